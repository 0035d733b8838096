"""Sources of context of a folder, made with what its code has and the app registers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from turnloom.agents.spec import ProviderChoice
from turnloom.assembly.spec import Chosen, RagCollection
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.assembly.spec.sources import Source, Summarise
from turnloom.conversation.logic.contexts import budget_of, format_of
from turnloom.conversation.logic.rosters import PlacedChoice
from turnloom.conversation.logic.sources import make_source, stand_in
from turnloom.errors import UsageError
from turnloom.kernel.documents import Path
from turnloom.kernel.values import nearest
from turnloom.wiring.code import PROVIDERS, Code, Place
from turnloom.wiring.collections import Collections

# Where something stands that is said under these keys.
Where = Callable[..., Place]

# The provider that is to be asked; nothing, and a problem, if it cannot be had.
Ask = Callable[[ProviderChoice, Where], Chosen | None]

_DECLARE_IT = (
    f"Declare it in {PROVIDERS!r} with `class Name(RagCollection)`, or let the program that starts "
    "runs say `app.register_collection(Name, adapter)` before."
)


class Registered(NamedTuple):
    """The collections that are registered, if there is an app; with `is_final`, a run is to start
    with them."""

    collections: Collections | None = None
    is_final: bool = True

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return [*self.collections.names] if self.collections else []

    def find(self, name: str) -> type[RagCollection] | None:
        """The one of a name."""
        return self.collections.known(name) if self.collections else None


class Sources:
    """Makes the sources that agents declare; what cannot be had is a problem of the code."""

    def __init__(
        self, code: Code, members: Mapping[str, Any], registered: Registered, ask: Ask
    ) -> None:
        self.code = code
        self.ask = ask
        self._own = {each.name: each for each in members.values() if _is_collection(each)}
        self._registered = registered

    def assembly(self, placed: PlacedChoice) -> Assembly | None:
        """What an agent's context is assembled from; nothing if that cannot be."""
        choice = placed.choice
        made = [self._source(placed, number) for number in range(len(choice.sources))]
        sources = tuple(each for each in made if each is not None)
        if len(sources) < len(made):
            return None
        try:
            return Assembly(sources, budget_of(choice), format_of(choice))
        except UsageError as error:
            self.code.note(placed.place("format"), "W012", str(error))
            return None

    def _source(self, placed: PlacedChoice, number: int) -> Source | None:
        choice = placed.choice.sources[number]

        def at(*keys: str | int) -> Place:
            return placed.place("sources", number, *keys)

        try:
            return make_source(choice, _Behind(self, at))
        except UsageError as error:
            self.code.note(at(choice.kind), "W012", str(error))
            return None

    def collection(self, name: str, place: Place) -> type[RagCollection]:
        """A collection by its name; one that nobody declares is a problem where it is named."""
        found = self._own.get(name) or self._registered.find(name)
        if found is not None:
            return found
        meant = nearest(name, [*self._own, *self._registered.names])
        remedy = f"Did you mean {meant!r}?" if meant else _DECLARE_IT
        severity = "error" if self._registered.is_final else "warning"
        message = f"Collection {name!r} is neither declared in {PROVIDERS!r} nor registered."
        self.code.note(place, "W057", message, remedy, severity)
        return stand_in(name)


@dataclass(frozen=True, slots=True)
class _Behind:
    """What stands behind the names of one source."""

    sources: Sources
    at: Where

    def collection(self, name: str, at: Path, /) -> type[RagCollection]:
        return self.sources.collection(name, self.at(*at))

    def summarise(self, name: str, at: Path, /) -> Summarise | None:
        return self.sources.code.function(PROVIDERS, name, self.at(*at))

    def provider(self, choice: ProviderChoice, /) -> Chosen | None:
        return self.sources.ask(choice, self.at)


def _is_collection(member: object) -> bool:
    is_class = isinstance(member, type) and issubclass(member, RagCollection)
    return is_class and member is not RagCollection
