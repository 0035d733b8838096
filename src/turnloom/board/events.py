"""What happened on the board."""

from typing import ClassVar

from turnloom.board.spec import Artifact
from turnloom.log.spec import Fact


class ArtifactPublished(Fact, frozen=True):
    """An artifact is on the board: from a turn, or from outside. `root` is the publish from outside
    that all this goes back to."""

    kind: ClassVar[str] = "artifact.published"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact", "root"})
    artifact: Artifact
    turn: int = 0
    root: str = ""


class ArtifactRefused(Fact, frozen=True):
    """Something was not published: an artifact of its id is on the board, with other content."""

    kind: ClassVar[str] = "artifact.refused"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: str
    reason: str


class ArtifactMade(Fact, frozen=True):
    """A turn made an artifact that was not to be published; nobody but who asked gets it."""

    kind: ClassVar[str] = "artifact.made"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifact"})
    artifact: Artifact
    turn: int


class ArtifactConsumed(Fact, frozen=True):
    """A subscription took artifacts: into a turn of this run, or into a run of their own."""

    kind: ClassVar[str] = "artifact.consumed"
    recorded: ClassVar[frozenset[str]] = frozenset({"artifacts"})
    agent: str
    subscription: str
    artifacts: tuple[str, ...]
    turn: int = 0
    run: str = ""
    retry_of: int = 0
