"""What a run of a board keeps beside the common state."""

from datetime import datetime
from itertools import chain
from typing import NamedTuple

import msgspec

from turnloom.board.spec import Artifact


class Assignment(msgspec.Struct, frozen=True):
    """Artifacts that an agent is to be given, and because of which publish from outside."""

    agent: str
    subscription: str
    artifacts: tuple[str, ...]
    root: str = ""
    publish: bool = True
    retry_of: int = 0


class WaitingArtifact(NamedTuple):
    """An artifact that waits: when it came, and as the how-manieth of all that came."""

    id: str
    at: datetime
    number: int


class Group(msgspec.Struct):
    """Artifacts with one key that wait for others: by type, the oldest first."""

    bins: dict[str, list[WaitingArtifact]] = {}

    @property
    def first(self) -> WaitingArtifact:
        """The one that has waited longest."""
        return min((bin[0] for bin in self.bins.values()), key=lambda entry: entry.number)

    @property
    def entries(self) -> list[WaitingArtifact]:
        """All that wait in it, in the order of their coming."""
        return sorted(chain.from_iterable(self.bins.values()), key=lambda entry: entry.number)


class Pending(msgspec.Struct):
    """What waits for one subscription: groups by key, the oldest first, and complete sets that
    wait to be a batch, since when."""

    groups: dict[str, Group] = {}
    sets: list[tuple[str, ...]] = []
    since: datetime | None = None
    arrived: int = 0

    @property
    def artifacts(self) -> tuple[str, ...]:
        """All that waits."""
        grouped = (entry.id for group in self.groups.values() for entry in group.entries)
        return (*chain.from_iterable(self.sets), *grouped)


class Later(msgspec.Struct, frozen=True):
    """An artifact that a subscription cannot see yet."""

    opens: datetime
    artifact: str
    subscription: str


class Tray(msgspec.Struct):
    """What lies before a run of a board.

    Artifacts are `held` as long as something `uses` them: they are `unoffered` (perhaps to one
    subscription only), `pending` with others, hidden until `later`, `ready` to be given to an
    agent, being worked on, opened a run for (`spawning`), or left because a turn failed. `outbox`
    has what goes to runs that collect; `counts` how many turns each publish from outside set off,
    and `depths` how many in a row led to each that is held. `chosen` says whom a guard chose for an
    artifact among those whom it would have woken, and in which category. `closing` has the
    subscriptions whose batch is taken as soon as all that came before is offered.
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
        """Whether nothing is left to be done here, now or when something else comes."""
        waits = any(each.groups or each.sets for each in self.pending.values())
        queued = self.unoffered or self.later or self.ready or self.spawning
        return not (waits or queued or self.working or self.failed)

    def hold(self, artifact: Artifact, root: str, depth: int) -> None:
        """Keep an artifact for one more use."""
        self.held[artifact.id] = artifact
        self.roots[artifact.id] = root
        self.depths[artifact.id] = depth
        self.keep(artifact.id)

    def keep(self, id: str) -> None:
        """Keep an artifact that is held for one more use."""
        self.uses[id] = self.uses.get(id, 0) + 1

    def release(self, *ids: str) -> None:
        """Let go of artifacts that were kept for a use; nobody holds those without any."""
        for id in ids:
            left = self.uses[id] - 1
            if left:
                self.uses[id] = left
            else:
                del self.uses[id], self.held[id], self.roots[id], self.depths[id]
                self.chosen.pop(id, None)
