"""What a user declares about lifecycle hooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json
from turnloom.variables.logic.conditions import Condition

BeforeOrAfter = Literal["before_chat", "after_chat", "before_agent", "after_agent"]
CHAT = ("before_chat", "after_chat")

# The triggers in the order in which they come up in a run.
TRIGGERS = ("before_chat", "before_agent", "after_agent", "after_chat")


def _listed(names: Json) -> Json:
    """One name as a list of it."""
    return [names] if isinstance(names, str) else names


class LifecycleTool(Declared):
    """A function that runs at a point of the lifecycle; it never stops the run.

    `agent` is whose turns it goes with: null for every agent, and for the chat.
    """

    trigger: BeforeOrAfter
    agent: str | None
    file: str = Field(min_length=1)
    function: str = Field(min_length=1)
    name: str = ""
    description: str = ""
    when: str | None = None
    after: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(default=(), strict=False)
    timeout_s: float = Field(default=60.0, gt=0)
    retries: int = Field(default=0, ge=0, le=10)
    on: Literal["success", "failure", "always"] = "success"

    @model_validator(mode="after")
    def _fits_its_trigger(self) -> "LifecycleTool":
        if self.trigger in CHAT and self.agent is not None:
            raise ValueError(
                f"{self.trigger!r} belongs to the chat, and {self.title!r} names agent "
                f"{self.agent!r}. Write `agent: null`, or use an agent's trigger."
            )
        if self.trigger != "after_chat" and "on" in self.model_fields_set:
            raise ValueError(
                f"'on' is for `after_chat`, and {self.title!r} runs {self.trigger!r}. Drop it."
            )
        return self

    @property
    def title(self) -> str:
        """What the hook is called: its `name`, or that of its function."""
        return self.name or self.function


class MessageHook(Declared):
    """A function at one of AG2's four hooks of messages; `hook_agent` is an agent or `all`.

    `update_agent_state(agent, messages)` may give the agent another system message for its turn;
    `process_all_messages_before_reply(messages)` and `process_last_received_message(content)`
    give back what the agent reads; `process_message_before_send(sender, message, recipient,
    silent)` gives back what it says.
    """

    hook_type: Literal[
        "update_agent_state",
        "process_all_messages_before_reply",
        "process_last_received_message",
        "process_message_before_send",
    ]
    hook_agent: str = Field(min_length=1)
    filename: str = Field(min_length=1)
    function: str = Field(min_length=1)

    def goes_with(self, agent: str) -> bool:
        """Whether it is meant for this agent."""
        return self.hook_agent in (ALL, agent)


# What message hooks call all agents.
ALL = "all"


@dataclass(frozen=True, slots=True)
class Hook:
    """A checked hook; `number` is its place among all, from 0."""

    number: int
    declared: LifecycleTool
    when: Condition | None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.declared.title


# Hooks by trigger, each list in the order in which they run.
Hooks = Mapping[str, tuple[Hook, ...]]
