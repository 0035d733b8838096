"""The built-in providers: what each gives, and what it refuses to be."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.assembly.boards import Turn
from turnloom import (
    CompositeProvider,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilteredContextProvider,
    RedactingProvider,
    StateDelegatingProvider,
    SummaryProvider,
    TranscriptProvider,
)
from turnloom.assembly.service.providers import MOST, newest_for, read
from turnloom.assembly.spec import ChosenProvider
from turnloom.board.spec import Artifact, ArtifactItems, FilterConfig, Private
from turnloom.board.spec.queries import MOST_COMPARED
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND, artifact, series

SAID = [("user", "hi"), ("A", "hello"), ("B", "hm"), ("A", "bye")]


def run_of(count: int, **more: Any) -> list[Artifact]:
    return series(count, correlation_id="c1", **more)


async def nothing(request: ContextRequest) -> ContextSlice:
    return ContextSlice(items=[])


# ------------------------------------------------------------------ correlation


async def test_the_default_is_what_belongs_to_the_run_oldest_first() -> None:
    others = [artifact("x", correlation_id="c2"), artifact("y")]
    turn = Turn([*reversed(run_of(4)), *others], correlation_id="c1")
    assert await turn.ids(DefaultCorrelationProvider()) == ["0", "1", "2", "3"]


async def test_without_a_correlation_there_is_nothing() -> None:
    assert await Turn(run_of(2)).ids(DefaultCorrelationProvider()) == []


async def test_a_limit_means_the_last_ones_that_the_reader_may_see() -> None:
    hidden = series(60, correlation_id="c1", visibility=Private({"eve"}))
    hidden = [artifact(f"h{each.id}", visibility=each.visibility) for each in hidden]
    turn = Turn([*run_of(5), *hidden], correlation_id="c1")
    assert await turn.ids(DefaultCorrelationProvider(limit=3)) == ["2", "3", "4"]


async def test_inputs_are_not_repeated_and_do_not_count() -> None:
    board = run_of(5)
    turn = Turn(board, correlation_id="c1", inputs=(board[3], board[4]))
    assert await turn.ids(DefaultCorrelationProvider(limit=2)) == ["1", "2"]
    assert await turn.ids(FilteredContextProvider(limit=2)) == ["1", "2"]


async def test_inputs_of_other_correlations_bring_theirs() -> None:
    board = [
        artifact(f"{name}{n}", correlation_id=name, created_at=NOON + (2 * n + k) * SECOND)
        for k, name in enumerate(["c1", "c2"])
        for n in range(3)
    ]
    inputs = tuple(each for each in board if each.id in ("c12", "c22"))
    turn = Turn(board, correlation_id="c1", inputs=inputs)
    assert await turn.ids(DefaultCorrelationProvider()) == ["c10", "c20", "c11", "c21"]
    assert await turn.ids(DefaultCorrelationProvider(limit=3)) == ["c20", "c11", "c21"]


async def test_an_item_says_what_it_shows() -> None:
    shown = artifact("a", correlation_id="c1", run="r7", tags={"z", "b"}, payload={"n": [1]})
    gathered = await Turn([shown], correlation_id="c1").gather(DefaultCorrelationProvider())
    assert gathered.items == (
        {
            "type": "test.Note",
            "payload": {"n": [1]},
            "produced_by": "ann",
            "artifact_id": "a",
            "created_at": "2026-01-31T12:00:00+00:00",
            "tags": ["b", "z"],
            "correlation_id": "c1",
            "run": "r7",
        },
    )


# ------------------------------------------------------------------ filters


@pytest.mark.parametrize(
    ("provider", "ids"),
    [
        (FilteredContextProvider(), "01234"),
        (FilteredContextProvider(limit=2), "34"),
        (FilteredContextProvider(FilterConfig(limit=2)), "34"),
        (FilteredContextProvider(FilterConfig(limit=4), limit=2), "34"),
        (FilteredContextProvider(limit=2, order="created_at"), "01"),
        (FilteredContextProvider(FilterConfig(order="created_at"), limit=2), "01"),
        (FilteredContextProvider(FilterConfig(order="created_at"), 3, "-created_at"), "432"),
        (FilteredContextProvider(FilterConfig(order="-created_at"), limit=2), "43"),
        (FilteredContextProvider(FilterConfig(produced_by={"bob"})), ""),
    ],
)  # fmt: skip
async def test_an_order_is_kept_and_without_one_the_last_are_meant(
    provider: FilteredContextProvider, ids: str
) -> None:
    assert await Turn(series(5)).ids(provider) == list(ids)


async def test_state_keys_stand_behind_the_artifacts_in_one_order() -> None:
    turn = Turn(series(1), state={"b": {"x": 1}, "a": [2], "c": 3})
    gathered = await turn.gather(FilteredContextProvider(include_state_keys={"b", "a"}))
    assert gathered.items[1:] == (
        {"type": "state", "payload": {"a": [2]}},
        {"type": "state", "payload": {"b": {"x": 1}}},
    )
    with pytest.raises(ContextUnavailable, match="'gone'"):
        await turn.gather(FilteredContextProvider(include_state_keys={"gone"}))


# ------------------------------------------------------------------ state


async def test_what_a_component_left_is_given() -> None:
    snapshot = [{"type": "hint", "payload": {"n": 1}}, {"type": "test.Note", "artifact_id": "0"}]
    turn = Turn(series(1), state={"context_snapshot": snapshot, "other": []})
    gathered = await turn.gather(StateDelegatingProvider())
    assert gathered.items == tuple(snapshot)
    assert [each.artifact for each in gathered.items] == ["", "0"]
    assert (await turn.gather(StateDelegatingProvider("other"))).items == ()


async def test_a_slice_that_a_component_left_is_given() -> None:
    left = ContextSlice(items=[{"n": 1}], metadata={"by": "component"})
    gathered = await Turn(state={"k": left}).gather(StateDelegatingProvider(key="k"))
    assert (gathered.items, gathered.metadata) == (({"n": 1},), {"by": "component"})
    left.items[0]["n"] = 2
    assert gathered.items == ({"n": 1},)


@pytest.mark.parametrize(
    ("state", "says"),
    [({}, "'context_snapshot'"), ({"context_snapshot": "text"}, "'str'")],
)
async def test_a_snapshot_that_is_none_is_an_error(state: dict[str, Any], says: str) -> None:
    with pytest.raises(ContextUnavailable, match=says):
        await Turn(state=state).gather(StateDelegatingProvider())


async def test_what_a_component_may_have_stolen_is_refused() -> None:
    hidden = artifact("secret", visibility=Private({"eve"}))
    turn = Turn([hidden], state={"context_snapshot": [{"artifact_id": "secret"}]})
    with pytest.raises(ContextUnavailable, match="'secret'"):
        await turn.gather(StateDelegatingProvider())


# ------------------------------------------------------------------ large boards


async def test_providers_read_all_pages() -> None:
    board = series(MOST_COMPARED + 2, correlation_id="c1")
    turn = Turn(board, correlation_id="c1", inputs=(board[0],))
    request = await turn.request(lambda _: None)
    read_newest = newest_for(request)
    found, _ = await DefaultCorrelationProvider().find("c1", request.inputs, read_newest)
    assert len(found) == MOST_COMPARED + 1
    last = FilterConfig(where=[("id", "eq", board[-1].id)], limit=1)
    assert [each.id for each in await read(request, last)] == [board[-1].id]


async def test_a_provider_does_not_read_without_end() -> None:
    class Endless:
        async def query_artifacts(
            self, filter: FilterConfig, *, cursor: str | None
        ) -> tuple[ArtifactItems, None]:
            return ArtifactItems([one] * 1_000, "more"), None

    one, request = artifact("a"), await Turn().request(lambda _: None)
    board: Any = Endless()
    with pytest.raises(UsageError, match="limit"):
        await read(replace(request, board=board), FilterConfig())


# ------------------------------------------------------------------ several


async def test_providers_are_asked_in_order_and_the_first_item_of_an_artifact_counts() -> None:
    async def theirs(request: ContextRequest) -> ContextSlice:
        found, _ = await request.board.query_artifacts()
        plain = [{"type": each.type, "payload": each.payload} for each in found]
        return ContextSlice(items=[{"hint": 1}, {"hint": 1}, *plain], metadata={"a": 2, "b": 2})

    async def first(request: ContextRequest) -> ContextSlice:
        return ContextSlice(items=[], metadata={"a": 1})

    board = [*run_of(2), artifact("x", payload={"x": 1})]
    turn = Turn(board, correlation_id="c1")
    provider = CompositeProvider(first, DefaultCorrelationProvider(), theirs)
    gathered = await turn.gather(provider)
    assert [(each.artifact, each.provider) for each in gathered.items] == [
        ("0", "CompositeProvider/DefaultCorrelationProvider"),
        ("1", "CompositeProvider/DefaultCorrelationProvider"),
        ("", "CompositeProvider/theirs"),
        ("", "CompositeProvider/theirs"),
        ("x", "CompositeProvider/theirs"),
    ]
    assert gathered.metadata == {"a": 1, "b": 2}
    assert [(each.provider, each.items) for each in gathered.calls] == [
        ("CompositeProvider", 5),
        ("CompositeProvider/first", 0),
        ("CompositeProvider/DefaultCorrelationProvider", 2),
        ("CompositeProvider/theirs", 5),
    ]


# ------------------------------------------------------------------ summaries


async def test_payloads_become_texts_which_are_made_once() -> None:
    made: list[str] = []

    def told(item: dict[str, Any]) -> str:
        made.append(item["artifact_id"])
        item["payload"].clear()
        return f"note {item['artifact_id']}"

    turn = Turn(series(3))
    provider = SummaryProvider(FilteredContextProvider(), told)
    for _ in range(2):
        gathered = await turn.gather(provider)
        assert [each["payload"] for each in gathered.items] == ["note 0", "note 1", "note 2"]
        assert [(each.artifact, each.redacted) for each in gathered.items][0] == ("0", ())
    assert made == ["0", "1", "2"]


async def test_other_content_is_told_anew() -> None:
    async def told(item: dict[str, Any]) -> str:
        return f"{item['payload']}"

    provider = SummaryProvider(FilteredContextProvider(), told)
    for payload in ({"n": 1}, {"n": 2}):
        gathered = await Turn([artifact("a", payload=payload)]).gather(provider)
        assert [each["payload"] for each in gathered.items] == [str(payload)]


async def test_texts_are_not_kept_without_end() -> None:
    made: list[Any] = []

    async def told(item: dict[str, Any]) -> str:
        made.append(item["n"])
        return ""

    provider = SummaryProvider(StateDelegatingProvider(), told)
    items = [{"n": n} for n in range(MOST + 1)]
    await Turn(state={"context_snapshot": items}).gather(provider)
    await Turn(state={"context_snapshot": items[:1]}).gather(provider)
    await Turn(state={"context_snapshot": items[-1:]}).gather(provider)
    assert made == [*range(MOST + 1), 0]


async def test_a_summary_that_is_no_text_is_an_error() -> None:
    with pytest.raises(ContextUnavailable, match="'int'"):
        await Turn(series(1)).gather(SummaryProvider(FilteredContextProvider(), len))


# ------------------------------------------------------------------ what was said


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (TranscriptProvider(), SAID),
        (TranscriptProvider(last=2), SAID[2:]),
        (TranscriptProvider(last=9), SAID),
        (TranscriptProvider(agents={"A"}), [SAID[1], SAID[3]]),
        (TranscriptProvider(last=1, agents=["user"]), SAID[:1]),
    ],
)
async def test_the_conversation_is_given(
    provider: TranscriptProvider, said: list[tuple[str, str]]
) -> None:
    gathered = await Turn(messages=SAID).gather(provider)
    assert gathered.items == tuple(
        {"type": "message", "payload": {"author": author, "text": text}, "produced_by": author}
        for author, text in said
    )


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: DefaultCorrelationProvider(limit=0), "`limit`.* 0"),
        (lambda: DefaultCorrelationProvider(limit=True), "`limit`.* True"),
        (lambda: FilteredContextProvider(limit=-1), "`limit`.* -1"),
        (lambda: FilteredContextProvider({"types": ["a"]}), "FilterConfig"),
        (lambda: FilteredContextProvider(order="newest"), "'newest'"),
        (lambda: FilteredContextProvider(include_state_keys="ab"), "'ab'"),
        (lambda: StateDelegatingProvider(""), "`key`"),
        (lambda: CompositeProvider(), "CompositeProvider"),
        (lambda: CompositeProvider(nothing, 5), "CompositeProvider.* 5"),
        (lambda: CompositeProvider(TranscriptProvider), "'TranscriptProvider'"),
        (lambda: RedactingProvider(None, ["a"]), "RedactingProvider.* None"),
        (lambda: RedactingProvider(nothing), "`keys`"),
        (lambda: RedactingProvider(nothing, "ab"), "'ab'"),
        (lambda: RedactingProvider(nothing, ["a..b"]), "'a..b'"),
        (lambda: RedactingProvider(nothing, [""]), "''"),
        (lambda: RedactingProvider(nothing, [1]), "1"),
        (lambda: RedactingProvider(nothing, ["a"], "x"), "'x'"),
        (lambda: RedactingProvider(nothing, transform={"a": None}), "None"),
        (lambda: RedactingProvider(nothing, ["a"], nothing), "function"),
        (lambda: SummaryProvider(nothing, None), "`summarise`.* None"),
        (lambda: SummaryProvider(None, str), "SummaryProvider.* None"),
        (lambda: TranscriptProvider(last=0), "`last`.* 0"),
        (lambda: TranscriptProvider(agents="A"), "'A'"),
        (lambda: TranscriptProvider(agents=[]), "`agents`"),
        (lambda: ChosenProvider(5), "5"),
        (lambda: ChosenProvider(nothing, fallback=TranscriptProvider), "'TranscriptProvider'"),
        (lambda: ChosenProvider(nothing, timeout=0), "0"),
    ],
)  # fmt: skip
def test_what_could_not_work_cannot_be_made(make: Callable[[], object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()
