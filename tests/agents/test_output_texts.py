"""The JSON value in what a model said."""

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.agents.logic.outputs.reading import read_output


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a":\n1}\n',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        'Here it is:\n\n```json\n{"a": 1}\n```\nAnything else?',
        'First:\n```python\nprint()\n```\nthen\n  ```JSON  \n  {"a": 1}\n  ```',
        'A plain block:\n```\nx\n```\nand\n````json\n{"a": 1}\n````',
    ],
)
def test_a_value_is_read(text: str) -> None:
    assert read_output(text) == {"a": 1}


@pytest.mark.parametrize("text", ["5", '"x"', "null", "[1, 2.5]", "true"])
def test_any_value_is_a_value(text: str) -> None:
    assert read_output(text) == json.loads(text)


def test_line_breaks_inside_of_strings_are_kept() -> None:
    assert read_output('```json\n["a\u2028b", "```"]\n```') == ["a\u2028b", "```"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I do not know.",
        '{"a": 1} and more',
        '{"a": 1',
        '```json\n{"a": 1}',
        "```json\n{a}\n```",
        "```json\n1\n```\n```json\n2\n```",
        "```python\n1\n```",
        "NaN",
        "1e999",
        '"\ud800"',
        '"\\ud800"',
        "9" * 100_000,
    ],
)
def test_what_holds_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_output(text)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        "[" * 500 + "]" * 500,
        '{"a":' * 200_000,
        "```json\n" * 200_000,
        "```" * 500_000,
        "`" * 1_000_000,
        "```json\n" + "[" * 1_000_000 + "\n```",
        "```json\n1\n```\n" * 100_000,
        "x" * 5_000_000,
        "```json\n" + " " * 5_000_000,
        "\n" * 2_000_000,
    ],
    ids=range(11),
)
def test_hostile_texts_neither_stall_nor_break(text: str) -> None:
    begin = process_time()
    with pytest.raises(ValueError):
        read_output(text)
    assert process_time() - begin < 3


@given(st.text(alphabet='`json{}[]":,1 \n'))
def test_any_text_gives_a_value_or_a_sentence(text: str) -> None:
    try:
        json.dumps(read_output(text))
    except ValueError as error:
        assert str(error)
