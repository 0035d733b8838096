"""What decides whose turn it is: a conversation, reactions or a flow."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from turnloom.agents.spec import Agent, OutputModel, Products, RunState, Toolkit, Transfer
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.log.spec import Event, Fact
from turnloom.runs.actions import Action, Finish, Work
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables


class Rest(NamedTuple):
    """What a run waits for that rests: whether it `continues` by itself, as a batch with a time
    does; where artifacts wait for others, how many are `collected`, and how many are `wanted`, if
    that is fixed."""

    continues: bool = False
    collected: int | None = None
    wanted: int | None = None


class Form(Protocol):
    """The pure half of a form: what it declares, how it folds events, and what it decides.

    `progress` is the type of its own part of the state; `has_people` says whether its runs may ask
    anyone.
    """

    form: str
    name: str
    version: str
    agents: Mapping[str, Agent]
    variables: Variables
    triggers: Triggers
    toolkit: Toolkit
    outputs: Mapping[str, OutputModel]
    products: Mapping[str, Products]
    hooks: Hooks
    message_hooks: tuple[MessageHook, ...]
    has_people: bool
    progress: type

    def begin(self) -> Any:
        """Its own part of a fresh state."""
        ...

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into its own part of the state."""
        ...

    def decide(self, state: RunState) -> Action | None:
        """The next thing to begin; asked again until there is none."""
        ...

    def work(self, state: RunState) -> Sequence[Work]:
        """The turns and steps that are open now."""
        ...

    def due(self, state: RunState) -> datetime | None:
        """When something is overdue next, of what the form itself waits for."""
        ...

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """What is to be recorded because its time has come."""
        ...

    def rest(self, state: RunState) -> Rest:
        """What a run waits for that rests."""
        ...

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another."""
        ...

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose at this moment."""
        ...

    def shows(self, agent: str) -> bool:
        """Whether the user sees what this agent says."""
        ...


def ending(state: RunState) -> str:
    """How a run that stops early will end; what its hooks were told first stays true."""
    cut_off = "cancelled" if state.cancel else "failed" if state.failure else ""
    return state.ending or cut_off


def stopped(state: RunState) -> Finish | None:
    """How a run ends that was cancelled, at once, or failed, after what runs."""
    if state.cancel is None and state.failure is None:
        return None
    match ending(state):
        case "cancelled":
            return Finish("cancelled", at_once=True)
        case "failed":
            return Finish("failed")
        case _:
            return None
