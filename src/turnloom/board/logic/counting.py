"""How many artifacts there are of what."""

from collections import Counter
from collections.abc import Iterable

from turnloom.board.spec import Artifact, BoardSummary, Visibility


class Counts:
    """What was counted so far."""

    def __init__(self) -> None:
        self._types: Counter[str] = Counter()
        self._producers: Counter[str] = Counter()
        self._visibilities: Counter[str] = Counter()
        self._tags: Counter[str] = Counter()

    def add(self, artifacts: Iterable[Artifact]) -> None:
        """Count some more."""
        for artifact in artifacts:
            self._types[artifact.type] += 1
            self._producers[artifact.produced_by] += 1
            self._visibilities[kind_of(artifact.visibility)] += 1
            self._tags.update(artifact.tags)

    def summary(self) -> BoardSummary:
        """All counts, each by name."""
        return BoardSummary(
            total=self._types.total(),
            by_type=_by_name(self._types),
            by_producer=_by_name(self._producers),
            by_visibility=_by_name(self._visibilities),
            by_tag=_by_name(self._tags),
        )


def kind_of(visibility: Visibility) -> str:
    """The kind of a visibility, as it is written."""
    return str(visibility.__struct_config__.tag)


def _by_name(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
