"""Objects that a program passes to its app, and optional ports of a store."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, cast

from turnloom.access.ports import Audit, Keys
from turnloom.agents.spec import Component, Engine, TurnComponent
from turnloom.agents.spec.arguments import as_component
from turnloom.assembly.ports import Vectors
from turnloom.errors import UsageError
from turnloom.feedback.ports import FeedbackStore
from turnloom.flow.ports import Results
from turnloom.flow.spec.nodes import StepNode
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Guards
from turnloom.jobs.ports import JobStore
from turnloom.kernel.values import preview
from turnloom.log.ports import Clock, EventLog
from turnloom.runtime.ports import (
    Artifacts,
    Backlog,
    Claims,
    Copies,
    Entropy,
    Inbox,
    Migrator,
    Observer,
    PersonalData,
    Plans,
    Pruner,
    Removals,
    Scheduler,
    Snapshots,
    Store,
    TenantList,
    Verifier,
)
from turnloom.schedules.ports import ScheduleStore
from turnloom.variables.ports import DocumentStore, Environment
from turnloom.wiring.servers import Connect


@dataclass(frozen=True, slots=True)
class Doors:
    """Objects that a program passes to its app. The app does not close them."""

    store: Store | None = None
    artifacts: Artifacts | None = None
    beliefs: BeliefStore | None = None
    documents: DocumentStore | None = None
    vectors: Vectors | None = None
    engine: Engine | None = None
    scheduler: Scheduler | None = None
    clock: Clock | None = None
    entropy: Entropy | None = None
    environment: Environment | None = None
    connect: Connect | None = None
    observers: Sequence[Observer] = ()
    components: tuple[Component, ...] = ()


class CallableObject(Protocol):
    """A callable object."""

    def __call__(self) -> Any:
        """Call the object."""
        ...


class Door(NamedTuple):
    """Requirements for an object passed as a setting: the members of `port`, or `check`. Some
    settings take a list of objects, a class, or a path instead of a URL."""

    port: type
    check: Callable[[Any], object] | None = None
    is_list: bool = False
    may_be_class: bool = False
    may_be_path: bool = False


DOORS: dict[str, Door] = {
    "store": Door(Store, may_be_path=True),
    "artifacts": Door(Artifacts),
    "beliefs": Door(BeliefStore),
    "documents": Door(DocumentStore, may_be_path=True),
    "vectors": Door(Vectors, may_be_path=True),
    "engine": Door(CallableObject),
    "scheduler": Door(Scheduler),
    "clock": Door(Clock),
    "entropy": Door(Entropy),
    "environment": Door(Environment),
    "connect": Door(CallableObject, may_be_class=True),
    "observers": Door(Observer, is_list=True),
    "components": Door(TurnComponent, as_component, is_list=True),
}

# Ports of a store. The optional ones may be missing; features that need them are then refused.
# `clock` is for stores shared by several machines; `verifier` checks stored logs; `pruner` removes
# runs, and `removals` is the record of that; `tenants` lists tenants; `copies` copies whole runs;
# `migrator` updates the schema; `keys`, `audit`, `feedback`, `schedules` and `jobs` stand beside
# runs; `backlog` finds runs whose wake was missed.
STORE_PORTS: dict[str, type] = {
    "log": EventLog,
    "inbox": Inbox,
    "claims": Claims,
    "snapshots": Snapshots,
    "plans": Plans,
    "artifacts": Artifacts,
    "beliefs": BeliefStore,
    "results": Results,
    "clock": Clock,
    "verifier": Verifier,
    "pruner": Pruner,
    "removals": Removals,
    "tenants": TenantList,
    "copies": Copies,
    "migrator": Migrator,
    "keys": Keys,
    "audit": Audit,
    "feedback": FeedbackStore,
    "schedules": ScheduleStore,
    "jobs": JobStore,
    "backlog": Backlog,
}
# Ports that keep data of persons outside of runs, if they are a `PersonalData`.
PERSONAL_PORTS = ("results", "feedback", "jobs", "keys", "schedules")
OPTIONAL_PORTS = frozenset({"artifacts", "beliefs", "results"})


def sort_out(given: Mapping[str, Any]) -> tuple[dict[str, Any], Doors]:
    """Separate the arguments of an app into values of settings and objects.

    Raises:
        UsageError: an object lacks members of its port.
    """
    values: dict[str, Any] = {}
    objects: dict[str, Any] = {}
    for name, each in given.items():
        door = DOORS.get(name)
        if door is not None and door.may_be_path and isinstance(each, os.PathLike):
            values[name] = f"sqlite:{os.fspath(cast(os.PathLike[str], each))}"
        elif door is None or each is None or isinstance(each, str) and not door.is_list:
            values[name] = each
        else:
            objects[name] = _passing(name, door, each)
    return values, Doors(**objects)


def _passing(name: str, door: Door, given: Any) -> Any:
    """Return the object or list of objects after its check."""
    if not door.is_list:
        check_object(f"Setting {name!r}", door.port, given, may_be_class=door.may_be_class)
        return given
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(f"Setting {name!r} must be a list of objects, got {preview(given)}.")
    each: tuple[Any, ...] = tuple(cast(Sequence[Any], given))
    for number, one in enumerate(each):
        _check_one(f"{name}[{number}]", door, one)
        if any(one is other for other in each[:number]):
            raise UsageError(f"{name}[{number}] is a duplicate. Remove it.")
    return each


def _check_one(what: str, door: Door, given: Any) -> None:
    if door.check is None:
        check_object(what, door.port, given)
        return
    try:
        door.check(given)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from error


def check_object(what: str, port: type, given: Any, *, may_be_class: bool = False) -> None:
    """Refuse an object that lacks members of a port.

    Raises:
        UsageError: members are missing.
    """
    if isinstance(given, type) and not may_be_class:
        raise UsageError(f"{what} is the class {given.__name__!r}. Pass an instance of it.")
    lacking = [*lacks(port, given)]
    if port is Store and not lacking:
        lacking = [*_lacks_in_ports(given)]
    if lacking:
        name = "callable" if port is CallableObject else f"a `{port.__name__}`"
        missing = ", ".join(lacking)
        raise UsageError(f"{what} is {preview(given)}, which is not {name}: it lacks {missing}.")


def lacks(port: type, given: Any) -> Iterator[str]:
    """Names of the members of a port that an object lacks."""
    for name in members(port):
        if port is Store and name in OPTIONAL_PORTS:
            continue
        found = getattr(given, name, None)
        if found is None or _is_method(port, name) and not callable(found):
            yield name


def _lacks_in_ports(store: Any) -> Iterator[str]:
    for name, port in STORE_PORTS.items():
        part = getattr(store, name, None)
        if part is not None:
            yield from (f"{name}.{each}" for each in lacks(port, part))


def members(port: type) -> list[str]:
    """Public members of a Protocol, those of its bases first."""
    bases = [base for base in reversed(port.__mro__) if base not in (object, Protocol, Generic)]
    names = {name: None for base in bases for name in vars(base) if _is_public(name)}
    return list(names)


def _is_public(name: str) -> bool:
    return name == "__call__" or not name.startswith("_")


def _is_method(port: type, name: str) -> bool:
    return isinstance(getattr(port, name, None), Callable)


class Lacking:
    """Placeholder of a port that a store lacks. Every call raises an error."""

    follows_log = True

    def __init__(self, port: str) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        raise _refusal("This", self._port)

    async def aclose(self) -> None:
        """Do nothing: no resource is open."""


class Capabilities:
    """Optional ports of an app's store."""

    def __init__(self, lacking: Collection[str] = ()) -> None:
        self._lacking = lacking

    def need(self, port: str, what: str) -> None:
        """Refuse a feature that needs a missing port.

        Raises:
            UsageError: the port is missing.
        """
        if port in self._lacking:
            raise _refusal(what, port)

    def need_for_guards(self, guards: Guards) -> None:
        """Refuse a selection without a port for beliefs."""
        if guards.selection is not None:
            self.need("beliefs", "A selection among agents")

    def need_for_steps(self, steps: Iterable[StepNode]) -> None:
        """Refuse cached or selecting steps without ports for their results or beliefs."""
        for node in steps:
            if node.cache is not None:
                self.need("results", f"`cache` of step {node.name!r}")
            if node.select is not None:
                self.need("beliefs", f"`select` of step {node.name!r}")


def port_of(store: Any, name: str) -> Any:
    """Return a port of a store, or a placeholder."""
    return getattr(store, name, None) or Lacking(name)


def personal_data(store: Any) -> dict[str, PersonalData]:
    """The ports of a store that keep data of persons outside of runs."""
    ports: dict[str, Any] = {name: getattr(store, name, None) for name in PERSONAL_PORTS}
    return {name: port for name, port in ports.items() if hasattr(port, "erase")}


def lacking_in(ports: dict[str, Any]) -> frozenset[str]:
    """Names of missing optional ports."""
    return frozenset(name for name in OPTIONAL_PORTS if isinstance(ports.get(name), Lacking))


def _refusal(what: str, port: str) -> UsageError:
    is_alone = port not in ("artifacts", "beliefs")
    elsewhere = "" if is_alone else f", or set `Loom({port}=…)`"
    return UsageError(
        f"{what} needs the port `{port}`, which the store of this app lacks. Add it to the store"
        f"{elsewhere}."
    )
