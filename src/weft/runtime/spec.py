"""Messages from outside to a run, and workflows as the runtime holds them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from weft.agents.spec import Engine, Workflow
from weft.kernel.values import Json
from weft.variables.events import ContextSuppressed


class Reply(msgspec.Struct, frozen=True, tag="answer"):
    """An answer to a question that the run asked."""

    question: str
    value: Json
    by: str


class Stop(msgspec.Struct, frozen=True, tag="cancel"):
    """The wish that the run end now."""

    by: str
    reason: str = ""


class Delivery(StrEnum):
    """What became of a message to a run."""

    TAKEN = "taken by whoever attends to the run"
    RECORDED = "on record; nobody attends to the run"
    REPEATED = "the same as before; the first one counts"


# What an inbox holds for a run.
Message = Reply | Stop


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checked workflow with the engines of its agents, and what a run of it is pinned to.

    `set_aside` names the parts that do not pass their check and count as empty.
    """

    workflow: Workflow
    engines: Mapping[str, Engine]
    root: str
    definition: str
    files: Mapping[str, str]
    code: Mapping[str, str]
    opening: str = ""
    database: str | None = None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Any])
    user_script: tuple[str, ...] = ()
    changed_code: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    suppressed: tuple[ContextSuppressed, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in one line: what it is, since when, and how it stands."""

    run: str
    workflow: str
    status: str
    tenant: str
    user: str
    started: datetime
    latest: datetime
    events: int
