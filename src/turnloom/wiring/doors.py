"""Objects that a program passes to its app, and ports that a store may lack."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, cast

from turnloom.agents.spec import Component, Engine, TurnComponent
from turnloom.agents.spec.arguments import as_component
from turnloom.assembly.ports import Vectors
from turnloom.errors import UsageError
from turnloom.flow.ports import Results
from turnloom.flow.spec.nodes import StepNode
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Guards
from turnloom.kernel.values import preview
from turnloom.log.ports import Clock, EventLog
from turnloom.runtime.ports import (
    Artifacts,
    Claims,
    Entropy,
    Inbox,
    Observer,
    Plans,
    Pruner,
    Scheduler,
    Snapshots,
    Store,
    Verifier,
)
from turnloom.variables.ports import DocumentStore, Environment
from turnloom.wiring.servers import Connect


@dataclass(frozen=True, slots=True)
class Doors:
    """Objects that a program gives its app. They stay open when the app closes."""

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
    """Something that is called."""

    def __call__(self) -> Any:
        """Call it."""
        ...


class Door(NamedTuple):
    """What an object must have to stand for a setting: the members of a port, or one of several
    that `check` knows. It may be a list of such objects, a class whose instances a call makes, or a
    path instead of a URL."""

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

# The ports of a store, and those that it may lack: what needs them is refused. A store of several
# machines has a clock, one that can be compared with what was stored has a verifier, and one that
# runs can be removed from has a pruner.
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
}
OPTIONAL_PORTS = frozenset({"artifacts", "beliefs", "results"})


def sort_out(given: Mapping[str, Any]) -> tuple[dict[str, Any], Doors]:
    """What a program gave its app: values of settings, and objects.

    Raises:
        UsageError: an object does not have what its setting needs.
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
    """An object of the program, or a list of them, that has what its setting needs."""
    if not door.is_list:
        check_object(f"Setting {name!r}", door.port, given, may_be_class=door.may_be_class)
        return given
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(f"Setting {name!r} is {preview(given)}; it takes a list of objects.")
    each: tuple[Any, ...] = tuple(cast(Sequence[Any], given))
    for number, one in enumerate(each):
        _check_one(f"{name}[{number}]", door, one)
        if any(one is other for other in each[:number]):
            raise UsageError(f"{name}[{number}] is there twice. Drop one of the two.")
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
        UsageError: it names what is missing.
    """
    if isinstance(given, type) and not may_be_class:
        raise UsageError(f"{what} is the class {given.__name__!r}. Give an object of it.")
    lacking = [*lacks(port, given)]
    if port is Store and not lacking:
        lacking = [*_lacks_in_ports(given)]
    if lacking:
        name = "callable" if port is CallableObject else f"`{port.__name__}`"
        raise UsageError(f"{what} is {preview(given)}, no {name}: it lacks {', '.join(lacking)}.")


def lacks(port: type, given: Any) -> Iterator[str]:
    """The members of a port that an object does not have."""
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
    """The names of what a Protocol asks for, those of its bases first."""
    bases = [base for base in reversed(port.__mro__) if base not in (object, Protocol, Generic)]
    names = {name: None for base in bases for name in vars(base) if _is_public(name)}
    return list(names)


def _is_public(name: str) -> bool:
    return name == "__call__" or not name.startswith("_")


def _is_method(port: type, name: str) -> bool:
    return isinstance(getattr(port, name, None), Callable)


class Lacking:
    """Stands in for a port that a store lacks, and refuses whatever is asked of it."""

    follows_log = True

    def __init__(self, port: str) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        raise _refusal("This", self._port)

    async def aclose(self) -> None:
        """Nothing is open."""


class Capabilities:
    """What the store of an app can do beside keeping runs."""

    def __init__(self, lacking: Collection[str] = ()) -> None:
        self._lacking = lacking

    def need(self, port: str, what: str) -> None:
        """Refuse what needs a port that the store lacks.

        Raises:
            UsageError: it names the port.
        """
        if port in self._lacking:
            raise _refusal(what, port)

    def need_for_guards(self, guards: Guards) -> None:
        """Refuse a selection where outcomes cannot be kept."""
        if guards.selection is not None:
            self.need("beliefs", "A selection among agents")

    def need_for_steps(self, steps: Iterable[StepNode]) -> None:
        """Refuse steps whose results or outcomes cannot be kept."""
        for node in steps:
            if node.cache is not None:
                self.need("results", f"`cache` of step {node.name!r}")
            if node.select is not None:
                self.need("beliefs", f"`select` of step {node.name!r}")


def port_of(store: Any, name: str) -> Any:
    """A port of a store, or what stands in for one that it lacks."""
    return getattr(store, name, None) or Lacking(name)


def lacking_in(ports: dict[str, Any]) -> frozenset[str]:
    """The names of the ports that are lacking."""
    return frozenset(name for name in OPTIONAL_PORTS if isinstance(ports.get(name), Lacking))


def _refusal(what: str, port: str) -> UsageError:
    is_alone = port in ("results", "verifier", "pruner")
    elsewhere = "" if is_alone else f", or say where else they are: `Loom({port}=…)`"
    return UsageError(
        f"{what} needs the port `{port}`, which the store of this app lacks. Give the store one"
        f"{elsewhere}."
    )
