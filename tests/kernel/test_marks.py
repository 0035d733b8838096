"""Text from outside that looks like a mark stays legible, and is none."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from turnloom.agents.spec import ToolCall
from turnloom.kernel.marks import BEGIN, mark, neutral

pieces = st.sampled_from([mark("a"), BEGIN, "⟨secret", ":", " :", "a⟩", "⟨", "x"])
texts = st.lists(pieces, max_size=6).map("".join)
data = st.recursive(
    st.none() | st.integers() | texts,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(texts, each, max_size=3),
    max_leaves=8,
)


@given(data)
def test_nothing_in_it_is_a_mark_and_repeating_it_changes_nothing(value: Any) -> None:
    plain = neutral(value)
    assert BEGIN.encode() not in msgspec.json.encode(plain)
    assert neutral(plain) == plain


@given(texts)
def test_it_is_the_text_with_spaces_in_it(text: str) -> None:
    assert neutral(text).replace(" ", "") == text.replace(" ", "")
    assert neutral(text) is text or BEGIN in text


def test_structs_sets_and_numbers_of_any_size_are_looked_through() -> None:
    call = ToolCall("t", {"x": [mark("a"), 2**80]})
    assert neutral((call, frozenset({mark("a")}))) == (
        ToolCall("t", {"x": ["⟨secret :a⟩", 2**80]}),
        frozenset({"⟨secret :a⟩"}),
    )


def test_what_holds_no_mark_is_not_copied() -> None:
    value = {"a": ["⟨x⟩", 1]}
    assert neutral(value) is value
