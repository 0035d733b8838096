"""Facts of the board."""

from typing import ClassVar

from turnloom.board.spec import Artifact
from turnloom.log.spec import Fact


class ArtifactPublished(Fact, frozen=True):
    """An artifact was published by a turn or by the program. `root` is the program's publish that
    caused it."""

    kind: ClassVar[str] = "artifact.published"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact", "root"})
    artifact: Artifact
    turn: int = 0
    root: str = ""


class ArtifactRefused(Fact, frozen=True):
    """An artifact was not published: its id exists with other content."""

    kind: ClassVar[str] = "artifact.refused"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: str
    reason: str


class ArtifactMade(Fact, frozen=True):
    """A turn made an artifact that is not published; only the caller gets it."""

    kind: ClassVar[str] = "artifact.made"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: Artifact
    turn: int


class ArtifactConsumed(Fact, frozen=True):
    """A subscription consumed artifacts: in a turn of this run, or in a separate run."""

    kind: ClassVar[str] = "artifact.consumed"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifacts"})
    agent: str
    subscription: str
    artifacts: tuple[str, ...]
    turn: int = 0
    run: str = ""
    retry_of: int = 0
