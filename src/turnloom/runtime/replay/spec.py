"""A run to replay, and the result."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnloom.log.events import RunForked, RunRetried
from turnloom.log.spec import Event, Fact
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.logic.secrets import NO_SECRETS, Secrets


@dataclass(frozen=True, slots=True)
class RecordedLog:
    """A run to replay: its definition, at first and as it was `changed`, its events, the secrets
    that can be read now, and whether components of the program were around its turns."""

    loaded: LoadedWorkflow
    events: Sequence[Event]
    changed: Sequence[LoadedWorkflow] = ()
    secrets: Secrets = NO_SECRETS
    has_components: bool = False


def may_change_definition(fact: Fact) -> bool:
    """Whether a run may continue with another definition after a fact."""
    return isinstance(fact, RunRetried) or (isinstance(fact, RunForked) and fact.pin is not None)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between a log and its replay: the event that the log has, and the one
    that is decided now; None if nothing is."""

    recorded: Event | None
    decided: Event | None


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """A replayed run: its events, how many of them are the `same`, with how many turns, and the
    first difference, if any. `changed_code` names the code that has changed since it began."""

    run: str
    workflow: str
    form: str
    events: int
    same: int
    turns: int
    difference: Difference | None = None
    changed_code: tuple[str, ...] = ()
