"""Redaction: what is taken out is nowhere, and that it was is on record."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.assembly.boards import Turn
from turnloom import (
    CompositeProvider,
    ContextRequest,
    ContextSlice,
    FilteredContextProvider,
    RedactingProvider,
    StateDelegatingProvider,
    SummaryProvider,
)
from turnloom.assembly.logic.redaction import redact, rule
from turnloom.assembly.logic.slices import gathered_fact
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.values import Json
from turnloom.testing.contracts.artifacts.samples import artifact

ORDER = {
    "id": 7,
    "customer": {"email": "e", "address": {"city": "x", "email": "f"}},
    "lines": [{"sku": 1, "card": "4111"}, {"sku": 2, "card": "4222"}],
    "private_note": "n",
    "private_mark": "m",
    "tags": ["a", "b"],
}


def without(*paths: str) -> dict[str, Any]:
    """The order without some of its parts."""
    left = msgspec.json.decode(msgspec.json.encode(ORDER))
    for path in paths:
        *way, last = path.split(".")
        inside = left
        for name in way:
            inside = inside[int(name) if isinstance(inside, list) else name]
        del inside[last]
    return left


@pytest.mark.parametrize(
    ("key", "paths"),
    [
        ("id", ["id"]),
        ("email", []),
        ("customer.email", ["customer.email"]),
        ("customer.*.email", ["customer.address.email"]),
        ("**.email", ["customer.email", "customer.address.email"]),
        ("customer.**.email", ["customer.email", "customer.address.email"]),
        ("lines.card", ["lines.0.card", "lines.1.card"]),
        ("lines.*.card", ["lines.0.card", "lines.1.card"]),
        ("lines.1.card", ["lines.1.card"]),
        ("**.card", ["lines.0.card", "lines.1.card"]),
        ("private_*", ["private_note", "private_mark"]),
        ("*_note", ["private_note"]),
        ("customer.**", ["customer"]),
        ("customer", ["customer"]),
        ("*", [*ORDER]),
        ("**", [*ORDER]),
        ("ID", []),
        ("id.x", []),
    ],
)
def test_keys_lead_to_what_they_mean(key: str, paths: list[str]) -> None:
    left, gone = redact(ORDER, [rule(key)])
    assert list(gone) == paths
    assert left == without(*paths)


def test_elements_of_lists_can_be_meant() -> None:
    assert redact(ORDER, [rule("tags.*")])[0]["tags"] == []
    assert redact(ORDER, [rule("tags.1")])[0]["tags"] == ["a"]
    assert redact(ORDER, [rule("lines.0")])[0]["lines"] == ORDER["lines"][1:]


SECRET = "hunter2"
names = st.sampled_from(["a", "b", "secret"])
hiding = st.recursive(
    st.integers(0, 3) | st.just("plain"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


def planted(value: Json) -> Json:
    """The value with a secret wherever a key says so."""
    if isinstance(value, dict):
        return {k: SECRET if k == "secret" else planted(each) for k, each in value.items()}
    return [planted(each) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(names, hiding, max_size=3).map(planted))
async def test_a_redacted_value_is_in_no_fact(payload: dict[str, Json]) -> None:
    board = [artifact("a", payload=payload)]
    turn = Turn(board, inputs=(artifact("in", payload=payload),), state={"k": payload})
    inner = FilteredContextProvider(include_state_keys={"k"})
    gathered = await turn.gather(RedactingProvider(inner, ["**.secret"]))
    assert SECRET not in str(gathered_fact(gathered, {}))
    kept = str(msgspec.json.encode(payload)).count("plain")
    shown = str(gathered_fact(gathered, {})).count("plain")
    assert shown == 2 * kept + (kept if gathered.inputs is not None else 0)
    if "secret" in payload:
        assert gathered.inputs is not None
        assert "secret" in gathered.inputs[0].redacted
        assert "secret" in gathered.items[0].redacted


async def shown(provider: RedactingProvider, payload: Json = ORDER) -> Json:
    gathered = await Turn([artifact("a", payload=payload)]).gather(provider)
    return gathered.items[0]["payload"]


ALL = FilteredContextProvider()


async def test_values_can_be_replaced() -> None:
    seen: list[tuple[str, Json]] = []

    def masked(path: str, value: Json) -> Json:
        seen.append((path, value))
        return "***"

    left = await shown(RedactingProvider(ALL, ["lines.card", "customer"], masked))
    assert left["customer"] == "***"
    assert left["lines"] == [{"sku": 1, "card": "***"}, {"sku": 2, "card": "***"}]
    assert seen[0] == ("customer", ORDER["customer"])
    assert [path for path, _ in seen[1:]] == ["lines.0.card", "lines.1.card"]


async def test_each_key_can_have_its_own_function_and_others_go() -> None:
    provider = RedactingProvider(
        ALL, ["**.email", "id"], transform={"**.city": str.upper, "id": lambda value: -value}
    )
    left = await shown(provider)
    assert left["customer"] == {"address": {"city": "X"}}
    assert left["id"] == -7


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (lambda path, value: 1 / 0, "'id'.*'ZeroDivisionError'"),
        (lambda path, value: {value}, "'id'.*'set'"),
    ],
)
async def test_a_transform_that_fails_is_not_skipped(
    transform: Callable[[str, Json], Json], says: str
) -> None:
    with pytest.raises(ContextUnavailable, match=says):
        await shown(RedactingProvider(ALL, ["id"], transform))


async def test_errors_do_not_tell_what_is_redacted() -> None:
    def tells(path: str, value: Json) -> Json:
        raise ValueError(value)

    async def tells_too(request: ContextRequest) -> ContextSlice:
        raise ValueError(SECRET)

    turn = Turn([artifact("a", payload={"secret": SECRET})])
    for provider in (
        RedactingProvider(ALL, ["secret"], tells),
        RedactingProvider(tells_too, ["secret"]),
    ):
        with pytest.raises(ContextUnavailable, match="ValueError") as caught:
            await turn.gather(provider)
        assert SECRET not in str(caught.value) + str(caught.value.failures)


async def test_what_is_said_beside_the_items_is_redacted_too() -> None:
    left = ContextSlice(items=[{"secret": SECRET, "n": 1}], metadata={"about": {"secret": SECRET}})
    turn = Turn(state={"context_snapshot": left})
    gathered = await turn.gather(RedactingProvider(StateDelegatingProvider(), ["**.secret"]))
    assert (gathered.items, gathered.metadata) == (({"n": 1},), {"about": {}})
    assert gathered.items[0].redacted == ("secret",)


async def test_texts_are_made_outside_not_inside() -> None:
    turn = Turn([artifact("a", payload={"secret": SECRET, "n": 1})])

    def told(item: dict[str, Any]) -> str:
        return str(item["payload"])

    gathered = await turn.gather(SummaryProvider(RedactingProvider(ALL, ["secret"]), told))
    (item,) = gathered.items
    assert (item["payload"], item.redacted) == ("{'n': 1}", ("secret",))
    with pytest.raises(ContextUnavailable, match=r"SummaryProvider\(RedactingProvider"):
        await turn.gather(RedactingProvider(SummaryProvider(ALL, told), ["secret"]))


async def test_inputs_that_several_redact_have_none_of_it() -> None:
    given = artifact("in", payload=ORDER)
    provider = CompositeProvider(
        RedactingProvider(ALL, ["id"]), ALL, RedactingProvider(ALL, ["customer.email"]), ALL
    )
    gathered = await Turn(inputs=(given,)).gather(provider)
    assert gathered.inputs is not None
    (item,) = gathered.inputs
    assert item["payload"] == without("id", "customer.email")
    assert (item.artifact, item.redacted) == ("in", ("id", "customer.email"))
    assert given.payload == ORDER


async def test_inputs_in_which_nothing_is_redacted_are_shown_as_they_are() -> None:
    turn = Turn(inputs=(artifact("in", payload=ORDER),))
    gathered = await turn.gather(RedactingProvider(ALL, ["nothing"]))
    assert gathered.inputs is None
    assert (await Turn().gather(RedactingProvider(ALL, ["x"]))).inputs is None


@pytest.mark.parametrize("key", ["a.b", "*.b", "**.b", "a.*", "a*b"])
def test_a_key_with_dots_in_it_is_reached(key: str) -> None:
    value: Json = {"a.b": "secret", "c": {"x": 1}}
    assert redact(value, [rule(key)]) == ({"c": {"x": 1}}, ("a.b",))


@pytest.mark.parametrize("key", ["$.email", "lines[0].card", "lines[*].card", " email", "a. b"])
def test_a_key_that_matches_nothing_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        RedactingProvider(FilteredContextProvider(), keys=[key])


async def test_what_stands_beside_the_payload_is_redacted_too() -> None:
    async def inner(request: ContextRequest) -> ContextSlice:
        return ContextSlice([{"type": "t", "payload": {"id": 1}, "note": {"email": "e"}}])

    (item,) = (await Turn().gather(RedactingProvider(inner, keys=["**.email"]))).items
    assert item == {"type": "t", "payload": {"id": 1}, "note": {}}
    assert item.redacted == ("note.email",)
