"""Values in words: what they are called, how they are shown, which word was probably meant."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.kernel.values import as_array, as_object, kind_of, nearest, preview


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (False, "boolean"),
        (0, "integer"),
        (1.0, "number"),
        ("", "string"),
        ({}, "object"),
        (MappingProxyType({}), "object"),
        ([], "array"),
        ((), "array"),
        (b"", "bytes"),
        ({1}, "set"),
    ],
)
def test_each_value_has_the_name_of_its_json_type(value: object, kind: str) -> None:
    assert kind_of(value) == kind


def test_only_plain_objects_and_arrays_are_taken_for_them() -> None:
    assert as_object({"a": 1}) == {"a": 1}
    assert as_array([1]) == [1]
    assert as_object([1]) is None
    assert as_array("ab") is None
    assert as_array((1,)) is None


@given(st.text(max_size=300), st.integers(2, 120))
def test_a_preview_is_one_line_of_bounded_length(text: str, limit: int) -> None:
    shown = preview(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) == 1


def test_a_preview_that_was_cut_says_so() -> None:
    assert preview("short") == "'short'"
    assert preview("x" * 200).endswith("…")


def test_a_value_that_cannot_be_written_has_a_preview_all_the_same() -> None:
    assert preview(10**5000) == "<integer that cannot be shown>"
    assert preview([-(10**5000)]) == "<array that cannot be shown>"


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("equls", ["equals", "contains"], "equals"),
        ("Equals", ["equals", "contains"], "equals"),
        ("tirggers", ["default", "triggers"], "triggers"),
        ("defualt", ["default", "triggers"], "default"),
        ("colour", ["tone", "stage"], None),
        ("", ["a"], None),
        ("a", [], None),
        ("ab", ["abc", "abd"], "abc"),
    ],
)
def test_the_nearest_word_is_the_one_that_was_probably_meant(
    word: str, known: list[str], meant: str | None
) -> None:
    assert nearest(word, known) == meant


def test_the_keys_of_a_mapping_are_known_words_too() -> None:
    assert nearest("stgae", {"stage": 1, "tone": 2}) == "stage"


@given(st.text(min_size=1, max_size=20), st.lists(st.text(max_size=20)))
def test_a_known_word_is_nearest_to_itself(word: str, others: list[str]) -> None:
    found = nearest(word, [*others, word])
    assert found is not None
    assert found.lower() == word.lower()


def test_a_very_long_word_is_like_nothing_short() -> None:
    assert nearest("x" * 5000, ["name", "type"]) is None
