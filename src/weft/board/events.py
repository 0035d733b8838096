"""What happened on the board."""

from typing import ClassVar

from weft.board.spec import Artifact
from weft.log.spec import Fact


class ArtifactPublished(Fact, frozen=True):
    """An artifact was put on the board, in a turn or from outside (0); `root` is what began it."""

    kind: ClassVar[str] = "artifact.published"
    artifact: Artifact
    turn: int = 0
    root: str = ""


class ArtifactConsumed(Fact, frozen=True):
    """An agent's subscription took artifacts into a turn of a run, of this one unless it names
    another; `retry_of` is the turn that failed on them before."""

    kind: ClassVar[str] = "artifact.consumed"
    agent: str
    subscription: str
    artifacts: tuple[str, ...]
    turn: int = 0
    run: str = ""
    retry_of: int = 0
