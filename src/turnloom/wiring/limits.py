"""Limits that `turnloom.toml` declares: runs of tenants, calls of models, questions of runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from turnloom.errors import UsageError
from turnloom.kernel.values import as_object, nearest, preview
from turnloom.runtime.journal import MOST_QUESTIONS
from turnloom.runtime.ports import EVERY_TENANT
from turnloom.runtime.spec import Limit
from turnloom.wiring.settings import Settings, table

_PARTS = ("tenants", "models", "questions")
_OF_MODELS = ("at_once", "per_minute")


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """Runs of a tenant that are driven at once, by tenant, and calls of models, by model; `*`
    stands for those that are not named. At most `questions` of a run are open at once."""

    tenants: Mapping[str, int] = field(default_factory=dict[str, int])
    models: Mapping[str, Limit] = field(default_factory=dict[str, Limit])
    questions: int = MOST_QUESTIONS


def read_limits(chosen: Settings) -> DeclaredLimits:
    """The limits of `turnloom.toml`, with the setting `tenant_slots` for all tenants.

    Raises:
        UsageError: one is not a limit.
    """
    declared = _table("limits", table("limits"), _PARTS)
    tenants = {EVERY_TENANT: chosen.tenant_slots} if chosen.tenant_slots else {}
    for name, most in _table("limits.tenants", declared.get("tenants")).items():
        tenants[name] = _count(f"limits.tenants.{name}", most)
    models: dict[str, Limit] = {}
    for name, given in _table("limits.models", declared.get("models")).items():
        where = f"limits.models.{name}"
        counts = _table(where, given, _OF_MODELS)
        if not counts:
            raise UsageError(f"`{where}` limits nothing. Give {' or '.join(_OF_MODELS)}.")
        limit = {each: _count(f"{where}.{each}", value) for each, value in counts.items()}
        models[name] = Limit(name, **limit)
    questions = _count("limits.questions", declared.get("questions", MOST_QUESTIONS))
    return DeclaredLimits(tenants, models, questions)


def _table(where: str, given: Any, known: tuple[str, ...] = ()) -> Mapping[str, Any]:
    if given is None:
        return {}
    found = as_object(given)
    if found is None:
        raise UsageError(f"`{where}` in turnloom.toml must be a table, got {preview(given)}.")
    for name in found if known else ():
        if name not in known:
            near = nearest(name, known)
            hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"`{where}` in turnloom.toml has no {name!r}. {hint}")
    return found


def _count(where: str, given: Any) -> int:
    if type(given) is int and given > 0:
        return given
    raise UsageError(
        f"`{where}` in turnloom.toml must be a positive integer, got {preview(given)}."
    )
