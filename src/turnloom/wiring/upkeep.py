"""The ports of a store by which it is kept, and the rules that the settings give."""

from collections.abc import Mapping
from typing import Any

from turnloom.errors import UsageError
from turnloom.kernel.durations import length
from turnloom.runtime.copying import CopyEnd
from turnloom.runtime.ports import EVERY_TENANT
from turnloom.runtime.pruning import PruningPorts
from turnloom.runtime.retention import Retention, RetentionRule
from turnloom.wiring.doors import Lacking, port_of
from turnloom.wiring.parts import Parts
from turnloom.wiring.settings import Settings


def pruning_ports(parts: Parts) -> PruningPorts:
    """The ports from which runs are removed.

    Raises:
        UsageError: artifacts are kept elsewhere.
    """
    own = getattr(parts.store, "artifacts", None)
    if parts.artifacts is not own and not isinstance(parts.artifacts, Lacking):
        raise UsageError(
            "Artifacts are kept in another place than runs, from which they cannot be removed. "
            "Remove runs from stores that keep both."
        )
    removals = getattr(parts.store, "removals", None)
    return PruningPorts(parts.store.log, port_of(parts.store, "pruner"), own, removals)


def copy_end(parts: Parts) -> CopyEnd:
    """The ports by which runs are copied from a store or to it."""
    store: Any = parts.store
    return CopyEnd(
        store,
        port_of(store, "copies"),
        getattr(store, "verifier", None),
        getattr(store, "removals", None),
    )


def retention_of(parts: Parts) -> Retention | None:
    """What removes runs whose time is over, if the settings say when that is."""
    rules = retention_rules(parts.settings)
    if not rules:
        return None
    tenants = port_of(parts.store, "tenants")
    return Retention(pruning_ports(parts), tenants, rules, parts.clock)


def retention_rules(chosen: Settings) -> Mapping[str, RetentionRule]:
    """The rules of each tenant that has its own, and of all others under `*`; none if every run is
    kept for ever."""
    tables: dict[str, dict[str, Any]] = {EVERY_TENANT: {}, **chosen.tenants}
    rules = {
        tenant: _rule(
            table.get("retention", chosen.retention), table.get("keep_failed", chosen.keep_failed)
        )
        for tenant, table in tables.items()
    }
    return rules if any(rule.age is not None for rule in rules.values()) else {}


def _rule(said: str, keep_failed: bool) -> RetentionRule:
    return RetentionRule(length(said) if said else None, said, keep_failed)
