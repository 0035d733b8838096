"""Triggers of derived variables."""

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Any, Literal, TypeGuard, TypeVar

from pydantic import Field, field_validator, model_validator

from turnloom.kernel.durations import seconds
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json


class _Unchanged(Enum):
    UNCHANGED = "unchanged"


# Returned by a derivation to leave its variable unchanged.
UNCHANGED = _Unchanged.UNCHANGED


# Maximum seconds of a timer: a hundred years, so that its date exists.
LONGEST = 100 * 366 * 86400.0

F = TypeVar("F", bound=Callable[..., Any])


def derivation(function: F) -> F:
    """Register a function of `derivations.py` for `function` triggers, under its name."""
    function.is_derivation = True  # pyright: ignore[reportFunctionMemberAccess]
    return function


class Trigger(Declared):
    """An event that sets a variable; base of all kinds of triggers."""

    type: Any
    once: bool = False

    @property
    def values(self) -> tuple[Json, ...] | None:
        """The values it can set, or None if they depend on the event."""
        return None


class Setting(Trigger):
    """A trigger that sets a declared value."""

    value: Json = True

    @property
    def values(self) -> tuple[Json, ...] | None:
        """The declared value."""
        return (self.value,)


class Match(Declared):
    """Conditions on a text; all of them must hold."""

    equals: str | None = None
    contains: str | None = None
    regex: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Match":
        if self.equals is None and self.contains is None and self.regex is None:
            raise ValueError("'match' is empty. Add `equals`, `contains` or `regex`.")
        return self


# The predicates of a `match`.
PREDICATES = ("equals", "contains", "regex")


def _is_dict(given: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(given, dict)


class TextTrigger(Setting):
    """Fires when a message matches; `capture` sets a group of the pattern instead of `value`."""

    match: Match
    capture: int | str | None = None
    trim: bool = True
    ignore_case: bool = True
    exact: bool = False

    @model_validator(mode="before")
    @classmethod
    def _takes_predicates_as_keys(cls, given: Any) -> Any:
        """MozaiksAI writes `equals`, `contains` and `regex` beside the other keys too."""
        flat = {key: given[key] for key in PREDICATES if key in given} if _is_dict(given) else {}
        if not flat or given.get("match") is not None:
            return given
        return {**{key: each for key, each in given.items() if key not in flat}, "match": flat}

    @model_validator(mode="after")
    def _compares_in_one_way(self) -> "TextTrigger":
        for key in ("trim", "ignore_case"):
            if self.exact and key in self.model_fields_set and getattr(self, key):
                raise ValueError(f"'exact' and {key!r} contradict each other. Keep one.")
        return self

    @model_validator(mode="after")
    def _captures_from_a_pattern(self) -> "TextTrigger":
        if self.capture is not None and self.match.regex is None:
            raise ValueError("'capture' needs `match.regex`. Add it.")
        if self.capture is not None and "value" in self.model_fields_set:
            raise ValueError("'capture' and 'value' exclude each other. Keep one.")
        return self

    @property
    def values(self) -> tuple[Json, ...] | None:
        """The declared value, or None with `capture`."""
        return None if self.capture is not None else (self.value,)


class AgentTextTrigger(TextTrigger):
    """Fires when an agent's message matches."""

    type: Literal["agent_text"]
    agent: str
    hide: bool = False
    ui_hidden: bool | None = None

    @property
    def hides(self) -> bool:
        """Whether the user does not see a message that matches: `hide`, or MozaiksAI's
        `ui_hidden`."""
        return self.hide or bool(self.ui_hidden)


class UserTextTrigger(TextTrigger):
    """Fires when a message of the user matches."""

    type: Literal["user_text"]


class UiResponse(Trigger):
    """The value under a key of a UI tool's answer; with `apply: auto` the runtime sets it."""

    type: Literal["ui_response"]
    tool: str
    response_key: str
    apply: Literal["tool", "auto"] = "tool"
    ui_hidden: bool | None = None


class AgentTurnCount(Setting):
    """Fires when an agent has taken `count` turns."""

    type: Literal["agent_turn_count"]
    agent: str
    count: int = Field(ge=1)


class ToolResponse(Setting):
    """Fires when a tool returns or fails; `from` sets a part of its result instead of `value`."""

    type: Literal["tool_response"]
    tool: str
    status: Literal["success", "error", "any"] = "success"
    path: str | None = None
    equals: Json = None
    contains: str | None = None
    source: str | None = Field(default=None, alias="from")

    @model_validator(mode="after")
    def _sets_one_thing(self) -> "ToolResponse":
        if self.source is not None and "value" in self.model_fields_set:
            raise ValueError("'from' and 'value' exclude each other. Keep one.")
        compares = "equals" in self.model_fields_set or self.contains is not None
        if compares and self.path is None:
            raise ValueError("'equals' and 'contains' need `path`. Add it.")
        return self

    @property
    def values(self) -> tuple[Json, ...] | None:
        """The declared value, or None with `from`."""
        return None if self.source is not None else (self.value,)


class TimerTrigger(Setting):
    """Fires some time after the start, an agent's turn or a variable's change."""

    type: Literal["timer_expired"]
    after: float = Field(gt=0, le=LONGEST)
    since: str = "run_start"

    @field_validator("after", mode="before")
    @classmethod
    def _reads_a_duration(cls, given: Any) -> Any:
        return seconds(given) if isinstance(given, str) else given

    @field_validator("since")
    @classmethod
    def _names_something(cls, given: str) -> str:
        kind, _, name = given.partition(":")
        if given == "run_start" or (kind in ("agent", "variable") and name):
            return given
        raise ValueError(
            f"Invalid 'since' {given!r}. Write `run_start`, `agent:NAME` or `variable:NAME`."
        )

    @property
    def delay(self) -> timedelta:
        """The delay."""
        return timedelta(seconds=self.after)


class ContextChange(Setting):
    """Fires when another variable takes a value."""

    type: Literal["context_changed"]
    variable: str
    equals: Json


class Function(Trigger):
    """Calls a function registered in the workflow's `derivations.py`."""

    type: Literal["function"]
    function: str
