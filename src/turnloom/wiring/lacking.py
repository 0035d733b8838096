"""Ports that a store may lack: what needs one is refused, and everything else works."""

from collections.abc import Collection, Iterable
from typing import Any

from turnloom.errors import UsageError
from turnloom.flow.spec.nodes import StepNode
from turnloom.guards.spec import Guards
from turnloom.wiring.doors import OPTIONAL_PORTS


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
