"""The board's part of a run's state."""

from datetime import datetime
from itertools import chain
from typing import NamedTuple

import msgspec

from turnloom.board.spec import Artifact


class Assignment(msgspec.Struct, frozen=True):
    """Artifacts for an agent; `root` is the artifact that started the chain."""

    agent: str
    subscription: str
    artifacts: tuple[str, ...]
    root: str = ""
    publish: bool = True
    retry_of: int = 0


class WaitingArtifact(NamedTuple):
    """A waiting artifact: when it arrived, and its number in the order of arrival."""

    id: str
    at: datetime
    number: int


class Group(msgspec.Struct):
    """Artifacts with one key that wait for others: by type, oldest first."""

    bins: dict[str, list[WaitingArtifact]] = {}

    @property
    def first(self) -> WaitingArtifact:
        """The artifact that has waited longest."""
        return min((bin[0] for bin in self.bins.values()), key=lambda entry: entry.number)

    @property
    def entries(self) -> list[WaitingArtifact]:
        """All artifacts of the group, in order of arrival."""
        return sorted(chain.from_iterable(self.bins.values()), key=lambda entry: entry.number)


class Pending(msgspec.Struct):
    """Artifacts that wait for one subscription: groups by key, oldest first, and the complete sets
    of a batch, the first of which arrived at `since`."""

    groups: dict[str, Group] = {}
    sets: list[tuple[str, ...]] = []
    since: datetime | None = None
    arrived: int = 0

    @property
    def artifacts(self) -> tuple[str, ...]:
        """All waiting artifacts."""
        grouped = (entry.id for group in self.groups.values() for entry in group.entries)
        return (*chain.from_iterable(self.sets), *grouped)


class Later(msgspec.Struct, frozen=True):
    """An artifact that a subscription cannot see yet."""

    opens: datetime
    artifact: str
    subscription: str


class BoardState(msgspec.Struct):
    """The board's part of a run's state.

    Artifacts are `held` while something `uses` them: they are `unoffered` (perhaps to one
    subscription only), `pending` with others, hidden until `later`, `ready` for an agent, in a turn
    (`working`), in a run that is being opened (`spawning`), or of a `failed` turn. `outbox` has the
    artifacts for runs that collect; `counts` the turns that each root caused, and `depths` the
    turns in a row that led to each held artifact. `chosen` has the agent that the selection guard
    chose for an artifact, and the category. `closing` has the subscriptions whose batch is taken
    once all earlier artifacts are offered.
    """

    held: dict[str, Artifact] = {}
    uses: dict[str, int] = {}
    roots: dict[str, str] = {}
    unoffered: list[tuple[str, str]] = []
    pending: dict[str, Pending] = {}
    later: list[Later] = []
    ready: dict[str, list[Assignment]] = {}
    spawning: dict[str, Assignment] = {}
    working: dict[int, Assignment] = {}
    failed: dict[int, Assignment] = {}
    outbox: list[tuple[str, str]] = []
    counts: dict[str, int] = {}
    depths: dict[str, int] = {}
    chosen: dict[str, tuple[str, str]] = {}
    closing: list[str] = []

    @property
    def is_clear(self) -> bool:
        """Whether nothing is left to do, now or after another arrival."""
        waits = any(each.groups or each.sets for each in self.pending.values())
        queued = self.unoffered or self.later or self.ready or self.spawning
        return not (waits or queued or self.working or self.failed)

    def hold(self, artifact: Artifact, root: str, depth: int) -> None:
        """Hold an artifact, with one use."""
        self.held[artifact.id] = artifact
        self.roots[artifact.id] = root
        self.depths[artifact.id] = depth
        self.keep(artifact.id)

    def keep(self, id: str) -> None:
        """Add a use to a held artifact."""
        self.uses[id] = self.uses.get(id, 0) + 1

    def release(self, *ids: str) -> None:
        """Remove a use of artifacts; those without uses are dropped."""
        for id in ids:
            left = self.uses[id] - 1
            if left:
                self.uses[id] = left
            else:
                del self.uses[id], self.held[id], self.roots[id], self.depths[id]
                self.chosen.pop(id, None)
