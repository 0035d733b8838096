"""The form of a run: a conversation, reactions or a flow, which decides whose turn it is."""

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from turnloom.agents.spec import Agent, OutputModel, Products, RunState, Toolkit, Transfer
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.log.spec import Event, Fact
from turnloom.runs.actions import Action, Finish, Work
from turnloom.runs.retries import Redo
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables


class Rest(NamedTuple):
    """What an idle run waits for: whether it `continues` by itself, as a batch with a timer does;
    while artifacts are collected, how many are `collected`, and how many `wanted`, if that is
    fixed."""

    continues: bool = False
    collected: int | None = None
    wanted: int | None = None


class Form(Protocol):
    """The pure half of a form: what it declares, how it folds events, and what it decides.

    `progress` is the type of its part of the state; `has_people` says whether its runs may ask a
    person, and `hears` whether their user may send them messages at any time.
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
    hears: bool
    progress: type

    def begin(self) -> Any:
        """The form's part of a new state."""
        ...

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into the form's part of the state."""
        ...

    def decide(self, state: RunState) -> Action | None:
        """The next action; called again until it returns None."""
        ...

    def work(self, state: RunState) -> Sequence[Work]:
        """The open turns and steps."""
        ...

    def due(self, state: RunState) -> datetime | None:
        """The form's next deadline."""
        ...

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """The facts to record because a deadline has passed."""
        ...

    def rest(self, state: RunState) -> Rest:
        """What an idle run waits for."""
        ...

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another."""
        ...

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose now."""
        ...

    def shows(self, agent: str) -> bool:
        """Whether the user sees this agent's messages."""
        ...

    def redo(
        self,
        events: Sequence[Event],
        stop: Event | None,
        since: int | str | None = None,
        at: int | None = None,
    ) -> Redo | None:
        """What a retry of an ended run does again: what failed (`stop` is the event that stopped
        the run, if one did), everything since a turn, by number, or a step, by name, or everything
        after a position. None if there is no such thing."""
        ...

    def misplaced(self, before: "Form", events: Sequence[Event]) -> Set[int]:
        """The positions of what a run did with another definition, and what has no place in this
        one and does not count, since it did nothing.

        Raises:
            PlanChanged: something that counts has no place in it.
        """
        ...


def ending(state: RunState) -> str:
    """How a run that stops early will end; the ending announced to its hooks first is kept."""
    cut_off = "cancelled" if state.cancel else "failed" if state.failure else ""
    return state.ending or cut_off


def stopped(state: RunState) -> Finish | None:
    """How to end a cancelled run, at once, or a failed one, after its open work."""
    if state.cancel is None and state.failure is None:
        return None
    match ending(state):
        case "cancelled":
            return Finish("cancelled", at_once=True)
        case "failed":
            return Finish("failed")
        case _:
            return None
