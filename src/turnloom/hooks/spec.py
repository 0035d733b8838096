"""Lifecycle hooks and message hooks as users declare them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json
from turnloom.variables.logic.conditions import Condition

BeforeOrAfter = Literal["before_chat", "after_chat", "before_agent", "after_agent"]
CHAT = ("before_chat", "after_chat")

# The triggers in the order of a run.
TRIGGERS = ("before_chat", "before_agent", "after_agent", "after_chat")


def _listed(names: Json) -> Json:
    """A single name as a list."""
    return [names] if isinstance(names, str) else names


def _of_all(name: Json) -> Json:
    """No name, if every agent is meant."""
    return None if _is_all(name) else name


def _is_all(name: Json) -> bool:
    return isinstance(name, str) and name.lower() == ALL


def _spelt_all(name: Json) -> Json:
    """The name of all agents, in lower case."""
    return ALL if _is_all(name) else name


# The agent of a hook for every agent.
ALL = "all"


class LifecycleTool(Declared):
    """A function that runs at a point of the lifecycle; it never stops the run.

    `agent` is the agent whose turns it runs around; without one, every agent's, or the chat.
    """

    trigger: BeforeOrAfter
    agent: Annotated[str | None, BeforeValidator(_of_all)] = None
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
                f"{self.title!r} names agent {self.agent!r}, but {self.trigger!r} belongs to the "
                "chat. Write `agent: null`, or use an agent's trigger."
            )
        if self.trigger != "after_chat" and "on" in self.model_fields_set:
            raise ValueError(
                f"'on' is for `after_chat` only, but {self.title!r} runs {self.trigger!r}. Drop it."
            )
        return self

    @property
    def title(self) -> str:
        """The hook's name: its `name`, or that of its function."""
        return self.name or self.function


class MessageHook(Declared):
    """A function at one of AG2's four message hooks; `hook_agent` is an agent, or `all`.

    `update_agent_state(agent, messages)` may replace the agent's system message for its turn;
    `process_all_messages_before_reply(messages)` and `process_last_received_message(content)`
    return what the agent reads; `process_message_before_send(sender, message, recipient,
    silent)` returns what it sends.
    """

    hook_type: Literal[
        "update_agent_state",
        "process_all_messages_before_reply",
        "process_last_received_message",
        "process_message_before_send",
    ]
    hook_agent: Annotated[str, BeforeValidator(_spelt_all)] = Field(default=ALL, min_length=1)
    filename: str = Field(min_length=1)
    function: str = Field(min_length=1)

    def goes_with(self, agent: str) -> bool:
        """Whether it applies to this agent."""
        return self.hook_agent in (ALL, agent)


@dataclass(frozen=True, slots=True)
class Hook:
    """A checked hook; `number` is its index among all hooks."""

    number: int
    declared: LifecycleTool
    when: Condition | None

    @property
    def name(self) -> str:
        """The hook's name."""
        return self.declared.title


# Hooks by trigger, in the order in which they run.
Hooks = Mapping[str, tuple[Hook, ...]]
