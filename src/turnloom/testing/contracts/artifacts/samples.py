"""Artifacts, readers and queries for the suites of artifact stores."""

from datetime import UTC, datetime, timedelta
from typing import Any

from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    After,
    Artifact,
    Consumption,
    FilterConfig,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    Tenant,
    Visibility,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LATER = NOON + 100 * SECOND
ANN = Reader("ann", {"staff", "audit"}, "acme")
BOB = Reader("bob", {"staff"}, "acme")
UNNAMED = Reader(tenant="acme")
EVERYTHING: dict[str, Any] = {
    "null": None,
    "flags": [True, False],
    "numbers": [0, -1, 2**53 + 1, 2**70, 0.1, -0.5e-9],
    "text": "line\nline \u2028 \0 \U0001f600 'quoted' \"twice\" \\ %s {}",
    "empty": ["", [], {}, [[]], [{}]],
    "deep": {"a": [{"b": {"c": [None, 1, "走る"]}}]},
    "ключ": {"日本": "ü", "": "nameless"},
}
HOSTILE = ("it's", 'a"b', "a; DROP TABLE artifacts", "%s %(x)s", "a'); --", "走る", "{}", "*", "\\")
SEEN_BY: list[tuple[Visibility, list[Reader]]] = [
    (Public(), [ANN, BOB, UNNAMED]),
    (Private({"ann", "eve"}), [ANN]),
    (Private({"ann", "bob"}), [ANN, BOB]),
    (Labelled({"staff"}), [ANN, BOB]),
    (Labelled({"staff", "audit"}), [ANN]),
    (Labelled({"audit", "board"}), []),
    (Shared(), [ANN, BOB, UNNAMED]),
    (Tenant("acme"), [ANN, BOB, UNNAMED]),
    (Tenant("globex"), []),
    (After(NOON, Tenant("acme")), [ANN, BOB, UNNAMED]),
    (After(NOON, Shared()), [ANN, BOB, UNNAMED]),
    (After(NOON + SECOND, Shared()), []),
    (After(NOON + 10 * SECOND, Public()), []),
    (After(NOON - SECOND, After(NOON, Labelled({"staff"}))), [ANN, BOB]),
    (After(NOON - SECOND, After(NOON + SECOND, Labelled({"staff"}))), []),
    (After(NOON + SECOND, After(NOON - SECOND, Private({"bob"}))), []),
]


def artifact(id: str, **more: Any) -> Artifact:
    """A public artifact of type `test.Note` by `ann`, created at noon, unless `more` says
    otherwise."""
    fields: dict[str, Any] = {"type": "test.Note", "payload": {"id": id}, "produced_by": "ann"}
    fields |= {"created_at": NOON, **more}
    return Artifact(id=id, **fields)


def consumption(artifact: str, **more: Any) -> Consumption:
    """A consumption by `ann` in the first turn of a run at noon, unless `more` says otherwise."""
    fields: dict[str, Any] = {"agent": "ann", "subscription": "ann/0", "run": "run/1", "turn": 1}
    fields |= {"at": NOON, **more}
    return Consumption(artifact=artifact, **fields)


def series(count: int, **more: Any) -> list[Artifact]:
    """Artifacts `0`, `1` and so on, one second apart from noon on."""
    return [artifact(str(n), created_at=NOON + n * SECOND, **more) for n in range(count)]


async def ids(
    store: ArtifactStore, reader: Reader = ANN, now: datetime = LATER, **asked: Any
) -> list[str]:
    """The ids that a reader finds; checks the total, and each one by `get`."""
    filter = FilterConfig(**asked)
    page = await store.query(filter, reader, now, count=True)
    items, total = [*page.items], page.total
    while page.cursor is not None and filter.limit is None:
        page = await store.query(filter, reader, now, cursor=page.cursor)
        items += page.items
    if filter.limit is None:
        assert total == len(items)
    for item in items:
        assert await store.get(item.id, reader, now) == item
    return [item.id for item in items]


async def pages(
    store: ArtifactStore, filter: FilterConfig, reader: Reader = ANN
) -> list[list[str]]:
    """The ids of each page, up to the last one."""
    found: list[list[str]] = []
    cursor = None
    while True:
        page = await store.query(filter, reader, LATER, cursor=cursor)
        found.append([item.id for item in page.items])
        cursor = page.cursor
        if cursor is None:
            return found
