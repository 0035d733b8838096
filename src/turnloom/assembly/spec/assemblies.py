"""What the context of an agent's turns is assembled from."""

from dataclasses import dataclass

from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.assembly.spec.sources import HistorySource, Source


@dataclass(frozen=True, slots=True)
class Assembly:
    """Sources in their order, how many tokens they may come to, and how that is written."""

    sources: tuple[Source, ...]
    budget: Budget | None = None
    format: ContextFormat = PLAIN

    @property
    def shows_history(self) -> bool:
        """Whether what was said is among it."""
        return any(isinstance(source, HistorySource) for source in self.sources)
