"""What was gathered becomes facts and pieces: each text once, each with its origin."""

import msgspec

from tests.assembly.boards import Turn
from turnloom import (
    CompositeProvider,
    FilteredContextProvider,
    RedactingProvider,
    StateDelegatingProvider,
)
from turnloom.assembly.events import Withheld
from turnloom.assembly.logic import view
from turnloom.assembly.logic.frames import context_pieces, input_pieces, left_out, texts_of
from turnloom.assembly.logic.slices import gathered_fact
from turnloom.kernel.digests import digest
from turnloom.testing.contracts.artifacts.samples import artifact

NOTE = artifact("a", payload={"z": 1, "b": "line\nbreak\u2028", "secret": "x"})
TEXT = (
    '\n{"artifact_id":"a","correlation_id":null,"created_at":"2026-01-31T12:00:00+00:00",'
    '"payload":{"b":"line\\nbreak\\u2028","z":1},"produced_by":"ann","run":null,"tags":[],'
    '"type":"test.Note"}'
)
REDACTING = RedactingProvider(
    CompositeProvider(FilteredContextProvider(), StateDelegatingProvider()), ["secret"]
)
PATH = "RedactingProvider/CompositeProvider/"


def turn() -> Turn:
    state = {"context_snapshot": [{"payload": {"secret": "y"}}]}
    return Turn([NOTE], state=state, inputs=(artifact("in", payload={"secret": "s", "n": 1}),))


async def test_an_item_stands_in_a_prompt_as_one_line_of_json() -> None:
    fact = gathered_fact(await turn().gather(REDACTING), {})
    head, item, state = context_pieces(fact, {})
    assert (head.kind, head.origin, head.text) == ("context", "context", "\n\nuser: Context:")
    assert (item.kind, item.origin) == ("artifact", f"{PATH}FilteredContextProvider")
    assert item.text == TEXT and "secret" in item.reason
    assert (state.origin, state.text) == (f"{PATH}StateDelegatingProvider", '\n{"payload":{}}')
    assert "secret" in state.reason
    assert view([head, item, state], []).text == ""  # it is given beside the system text


async def test_inputs_stand_under_their_own_head() -> None:
    each = turn()
    fact = gathered_fact(await each.gather(REDACTING), {})
    head, item = input_pieces(each.inputs, fact, {})
    assert (head.kind, head.text) == ("input", "\n\nuser: Input:")
    assert (item.kind, item.origin) == ("input", "artifact in") and "secret" in item.reason
    assert '"payload":{"n":1}' in item.text
    plain = gathered_fact(await turn().gather(FilteredContextProvider()), {})
    for gathered in (plain, None):
        _, item = input_pieces(each.inputs, gathered, {})
        assert "secret" not in item.reason
        assert '"payload":{"n":1,"secret":"s"}' in item.text
    assert input_pieces((), plain, {}) == []


async def test_what_is_redacted_is_withheld() -> None:
    fact = gathered_fact(await turn().gather(REDACTING), {})
    assert left_out(fact) == [
        Withheld("artifact a.secret", "redacted", f"{PATH}FilteredContextProvider"),
        Withheld(f"{PATH}StateDelegatingProvider.secret", "redacted", fact.items[1].provider),
        Withheld("artifact in.secret", "redacted", "RedactingProvider"),
    ]


async def test_nothing_gathered_is_nothing_shown() -> None:
    assert (
        context_pieces(gathered_fact(await Turn().gather(FilteredContextProvider()), {}), {}) == []
    )


async def test_a_text_is_recorded_once_in_a_run() -> None:
    twice = {"context_snapshot": [{"n": 1}, {"n": 1}, {"n": 2}]}
    gathered = await Turn(state=twice).gather(StateDelegatingProvider())
    first = gathered_fact(gathered, {})
    assert [each.text for each in first.items] == ['\n{"n":1}', None, '\n{"n":2}']
    texts = texts_of(first)
    assert texts == {digest(text): text for text in ('\n{"n":1}', '\n{"n":2}')}
    again = gathered_fact(gathered, texts)
    assert [each.text for each in again.items] == [None] * 3
    assert context_pieces(again, texts) == context_pieces(first, {})


async def test_digests_are_of_what_is_recorded() -> None:
    gathered = await Turn(state={"context_snapshot": [{"n": "key"}]}).gather(
        StateDelegatingProvider()
    )
    (item,) = gathered_fact(gathered, {}, lambda text: text.replace("key", "⟨secret:n⟩")).items
    assert item.text == '\n{"n":"⟨secret:n⟩"}'
    assert item.digest == digest(item.text)


async def test_how_long_a_call_took_is_in_no_digest() -> None:
    gathered = await turn().gather(REDACTING)
    slower = [msgspec.structs.replace(each, micros=each.micros + 1) for each in gathered.calls]
    one = gathered_fact(gathered, {})
    other = gathered_fact(gathered._replace(calls=tuple(slower)), {})
    assert one.calls != other.calls
    assert (one.items, one.inputs) == (other.items, other.inputs)
    assert context_pieces(one, {}) == context_pieces(other, {})
