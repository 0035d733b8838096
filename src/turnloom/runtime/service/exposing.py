"""Secrets in a run: which of them an agent is shown, and data with them put in."""

from collections.abc import Collection
from typing import TypeVar, cast

from turnloom.assembly.spec.assemblies import Assembly
from turnloom.assembly.spec.sources import VariableSource
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.exposure import names_of

T = TypeVar("T")


def opened(journal: Journal, value: T, names: Collection[str] | None = None) -> T:
    """A recorded value with secrets put in: those of these names, or all, as far as the run has
    them. One that a gate keeps from it stays a mark."""
    if not journal.has_secrets or names == NONE:
        return value
    secrets, values = journal.secrets, journal.state.values
    wanted = secrets.names if names is None else names
    return cast(T, secrets.opened(value, [each for each in wanted if each in values]))


def exposed(journal: Journal, loaded: Loaded, agent: str) -> frozenset[str]:
    """The secrets that the agent's prompt shows, by its exposure or its sources, and that the run
    has: a gate keeps others from it."""
    if not journal.has_secrets:
        return NONE
    secrets, values = journal.secrets, journal.state.values
    exposure = journal.workflow.variables.exposures.get(agent)
    names = [*(names_of(exposure) if exposure is not None else ()), *_sourced(loaded, agent)]
    return frozenset(name for name in names if name in secrets and name in values)


def _sourced(loaded: Loaded, agent: str) -> list[str]:
    """The variables that are sources of the agent's context."""
    staff = loaded.staff.get(agent)
    context = staff.context if staff is not None else None
    sources = context.sources if isinstance(context, Assembly) else ()
    return [name for each in sources if isinstance(each, VariableSource) for name in each.names]


NONE: frozenset[str] = frozenset()
