"""Every port that reads takes a tenant, or a value that has one."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Protocol, get_args, get_type_hints

import pytest

from turnloom.assembly.ports import VectorSearch, VectorStore
from turnloom.assembly.spec.retrieval import Probe
from turnloom.board.spec import Reader
from turnloom.guards.spec import Observation, Pool
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Scheduler, Store
from turnloom.variables.ports import DocumentStore, Lookup

# What says whose something is.
TENANTED = {RunKey, Reader, Pool, Observation, Lookup, Probe}
# What is no reading of what tenants keep, each with its reason.
EXEMPT = {
    "aclose": "it closes",
    "drain": "it ends the drives of this process",
    "arrivals": "a process hears of the mail of all tenants, and gives keys that say whose it is",
    "serve": "it drives what was woken under keys",
}


def ports_of(store: type) -> list[type]:
    """The ports that a store bundles."""
    properties = [each for _, each in inspect.getmembers(store, lambda m: isinstance(m, property))]
    return [get_type_hints(each.fget)["return"] for each in properties]


def without_tenant(port: type) -> list[str]:
    """The methods of a port that do not say whose something is."""
    return [
        f"{port.__name__}.{name}"
        for name, method in inspect.getmembers(port, inspect.isfunction)
        if not name.startswith("_") and name not in EXEMPT and not _says_whose(method)
    ]


def _says_whose(method: Callable[..., Any]) -> bool:
    hints = get_type_hints(method)
    hints.pop("return", None)
    return hints.get("tenant") is str or any(
        each in TENANTED for hint in hints.values() for each in _types(hint)
    )


def _types(hint: Any) -> Iterator[Any]:
    yield hint
    for each in get_args(hint):
        yield from _types(each)


PORTS = [*ports_of(Store), DocumentStore, Scheduler, VectorStore, VectorSearch]


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
def test_every_port_says_whose(port: type) -> None:
    assert without_tenant(port) == []


def test_all_ports_are_looked_at() -> None:
    names = {port.__name__ for port in PORTS}
    assert names >= {"EventLog", "Inbox", "Claims", "Snapshots", "Artifacts", "BeliefStore"}
    assert names >= {"Results", "Plans", "DocumentStore"}


class Careless(Protocol):
    """A port that does not ask whose."""

    async def find(self, run: str) -> bytes:
        """What is kept of a run."""
        ...

    async def keep(self, run: RunKey, state: bytes) -> None:
        """Keep something of a run."""
        ...


def test_a_port_that_does_not_say_whose_is_found() -> None:
    assert without_tenant(Careless) == ["Careless.find"]
