import json
import math
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnloom.adapters.files import parse
from turnloom.errors import Diagnostic
from turnloom.kernel.documents import DeclarationFile, Path, Place


def document(file: str, text: str) -> DeclarationFile:
    found, problems = parse(file, text)
    assert problems == []
    assert found is not None
    return found


def problems(file: str, text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.code) for problem in parse(file, text)[1]]


def only(file: str, text: str) -> Diagnostic:
    (problem,) = parse(file, text)[1]
    assert problem.file == file
    assert problem.message and problem.remedy
    return problem


def paths(value: Any, path: Path = ()) -> set[Path]:
    match value:
        case dict():
            below = [paths(item, (*path, key)) for key, item in value.items()]
        case list():
            below = [paths(item, (*path, index)) for index, item in enumerate(value)]
        case _:
            below = []
    return {path}.union(*below)


# ------------------------------------------------------------------------------------ places


def test_yaml_places_are_those_of_keys_and_of_items() -> None:
    text = (
        "# about\nagents:\n- name: A\n  tools:\n  - x\n  -\n    y: 1\n- {name: B, tools: [p, q]}\n"
    )
    found = document("W/agents.yaml", text)
    assert found.value == {
        "agents": [{"name": "A", "tools": ["x", {"y": 1}]}, {"name": "B", "tools": ["p", "q"]}]
    }
    assert found.text == text
    assert found.places == {
        (): Place(2, 1),
        ("agents",): Place(2, 1),
        ("agents", 0): Place(3, 3),
        ("agents", 0, "name"): Place(3, 3),
        ("agents", 0, "tools"): Place(4, 3),
        ("agents", 0, "tools", 0): Place(5, 5),
        ("agents", 0, "tools", 1): Place(7, 5),
        ("agents", 0, "tools", 1, "y"): Place(7, 5),
        ("agents", 1): Place(8, 3),
        ("agents", 1, "name"): Place(8, 4),
        ("agents", 1, "tools"): Place(8, 13),
        ("agents", 1, "tools", 0): Place(8, 21),
        ("agents", 1, "tools", 1): Place(8, 24),
    }


def test_json_places_are_those_of_keys_and_of_items() -> None:
    found = document("W/agents.json", '{\n\t"a": [1,\n\t\t{"b": "}\\"]"}],\n  "c"\n: null\n}')
    assert found.value == {"a": [1, {"b": '}"]'}], "c": None}
    assert found.places == {
        (): Place(1, 1),
        ("a",): Place(2, 2),
        ("a", 0): Place(2, 8),
        ("a", 1): Place(3, 3),
        ("a", 1, "b"): Place(3, 4),
        ("c",): Place(4, 3),
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_every_kind_of_line_end_counts_once(file: str, end: str) -> None:
    found = document(file, '{"a": 1,\n"b": ["é😀",\n2], "c": 3}'.replace("\n", end))
    assert found.places[("b",)] == Place(2, 1)
    assert found.places[("b", 1)] == Place(3, 1)
    assert found.places[("c",)] == Place(3, 5)


@pytest.mark.parametrize("file", ["a.json", "a.yaml", "a.yml"])
def test_columns_count_characters_and_no_byte_order_mark(file: str) -> None:
    found = document(file, '\ufeff{"é😀": 1, "b": 2}')
    assert found.places[("é😀",)] == Place(1, 2)
    assert found.places[("b",)] == Place(1, 11)
    assert not found.text.startswith("\ufeff")


def test_an_alias_stands_where_it_is_written_and_its_inside_where_it_was_defined() -> None:
    found = document("a.yaml", "a: &x\n  k: 1\nb: *x\nc:\n- *x\n")
    assert found.value == {"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}]}
    assert found.places[("b",)] == Place(3, 1)
    assert found.places[("b", "k")] == Place(2, 3)
    assert found.places[("c", 0)] == Place(5, 3)


def test_an_anchor_may_be_given_again_and_an_alias_may_be_a_key() -> None:
    assert document("a.yaml", "- &x a\n- *x\n- &x b\n- {*x : 1}").value == ["a", "a", "b", {"b": 1}]


# ------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("text", ["", "  \n\t\n", "\ufeff", "\r\n"])
def test_an_empty_json_file_is_an_empty_mapping(text: str) -> None:
    found = document("a.json", text)
    assert (found.value, found.places) == ({}, {(): Place(1, 1)})


@pytest.mark.parametrize("text", ["", "  \n\n", "# only a comment\n", "---\n", "---\n...\n"])
def test_an_empty_yaml_file_is_an_empty_mapping(text: str) -> None:
    found = document("a.yaml", text)
    assert (found.value, found.places) == ({}, {(): Place(1, 1)})


@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
@pytest.mark.parametrize("value", [None, True, 0, 1.5, "x", [], [1], {}])
def test_any_json_value_may_be_the_root(file: str, value: Any) -> None:
    assert document(file, json.dumps(value)).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("Null", None),
        ("nUll", "nUll"),
        ("2024-01-02", "2024-01-02"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("12:30:45", "12:30:45"),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("010", 10),
        ("+12", 12),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        ("=", "="),
        ("<<", "<<"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("!!int '7'", 7),
        ("!!float 7", 7),
        ("!!bool true", True),
        ("!!null ''", None),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ('"\\ud83d\\ude00"', "😀"),
        ("|\n  a\n  b", "a\nb"),
        (">-\n  a\n  b", "a b"),
    ],
)
def test_yaml_scalars_follow_the_core_schema(text: str, value: Any) -> None:
    found = document("a.yaml", f"v: {text}").value["v"]
    assert found == value
    assert type(found) is type(value) or text.startswith("!!float")


def test_a_yaml_1_1_directive_changes_no_value() -> None:
    assert document("a.yaml", "%YAML 1.1\n---\na: yes\nb: 017\n").value == {"a": "yes", "b": 17}


# ------------------------------------------------------------------------------------ problems


# Line and kind of each mistake; mistakes of a kind are remedied alike.
JSON_MISTAKES = [
    ("{'a': 1}", 1, "quotes"),
    ('{"a": 1,}', 1, "quotes"),
    ('{"a": 1\n"b": 2}', 2, "missing"),
    ('{"a": "x\ny"}', 1, "\\n"),
    ('["\\q"]', 1, "backslash"),
    ('{}\n{}"', 2, "one value"),
    ('\n["x', 2, "Close"),
    ("[1] # no comments", 1, "one value"),
    ("[1,\n nul]", 2, "Correct"),
    ("[" * 60, 1, "Correct"),
    ("]", 1, "Correct"),
    ("[01]", 1, "missing"),
    ("[.5]", 1, "Correct"),
    ("[1\u00a0]", 1, "missing"),
]
YAML_MISTAKES = [
    ("a:\n\tb: 1", 2, "spaces"),
    ("a: 1\nb: c: d", 2, "quote"),
    ("a: @x", 1, "quotes"),
    ("a: [1,\n2", 2, "Correct"),
    ('a: 1\nb: "x', 2, "Close"),
    ("  a: 1\n b: 2", 2, "Indent"),
    ("- a\nb: c", 2, "Indent"),
    ('a: "\\q"', 1, "backslash"),
    ("a:\n  - *nothing", 2, "Mark"),
    ("&a [*a]", 1, "Mark"),
    ("a: 1\n---\nb: 2", 2, "split"),
    ("a\n---\n---", 2, "split"),
    ("a: 1\nb: \x07", 2, "escape"),
    ('a: 1\nb: "\\UFFFFFFFF"', 2, "Correct"),
    ('a: "\\U00110000"', 1, "Correct"),
    ("%YAML 1.10\n---\na", 1, "Correct"),
    ("a: \ud800", 1, "escape"),
]


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [("a.json", *each[:2]) for each in JSON_MISTAKES]
    + [("a.yaml", *each[:2]) for each in YAML_MISTAKES],
)
def test_a_syntax_error_is_told_where_it_stands(file: str, text: str, line: int) -> None:
    problem = only(file, text)
    assert (problem.line, problem.code) == (line, "W002")
    assert parse(file, text)[0] is None


@pytest.mark.parametrize(
    ("file", "mistakes"), [("a.json", JSON_MISTAKES), ("a.yaml", YAML_MISTAKES)]
)
def test_each_kind_of_mistake_has_its_own_remedy(
    file: str, mistakes: list[tuple[str, int, str]]
) -> None:
    kinds: dict[str, set[str]] = {}
    for text, _, kind in mistakes:
        kinds.setdefault(only(file, text).remedy, set()).add(kind)
    assert [found for found in kinds.values() if len(found) > 1] == []


@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_a_nul_character_cannot_be_read(file: str) -> None:
    problem = only(file, '{\n"a\0": 1}')
    assert (problem.line, problem.code) == (2, "W001")


@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_double_keys_name_both_lines_and_the_first_one_stands(file: str) -> None:
    text = '{"a": 1,\n"b": {"c": 1, "c": 2},\n"\\u0061": 3,\n"a": 4}'
    found, all_problems = parse(file, text)
    assert [(problem.line, problem.code) for problem in all_problems] == [
        (2, "W003"),
        (3, "W003"),
        (4, "W003"),
    ]
    assert "line 1" in all_problems[-1].message and "line 4" in all_problems[-1].message
    assert found is not None
    assert found.value == {"a": 1, "b": {"c": 1}}
    assert found.place(("a",)) == Place(1, 2)


@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_values_nest_to_the_limit_and_no_further(file: str) -> None:
    assert document(file, "[" * 64 + "1" + "]" * 64).value
    problem = only(file, "[\n" * 65 + "]" * 65)
    assert (problem.line, problem.code) == (65, "W005")
    assert only(file, '{"a":\n' * 100_000).code == "W005"


def test_a_tag_on_nothing_is_no_empty_file() -> None:
    assert problems("a.yaml", "!mine\n") == [(1, "W006")]
    assert document("a.yaml", "!!str\n").value == ""


@pytest.mark.parametrize("piece", ['"\\', '\\"', '"', "[", '{"a":', "[1,"])
def test_no_broken_json_takes_long(piece: str) -> None:
    begin = process_time()
    assert len(problems("a.json", piece * (4_000_000 // len(piece)))) == 1
    assert process_time() - begin < 10


def test_brackets_in_strings_are_no_levels() -> None:
    assert document("a.json", json.dumps(["[{" * 100])).value == ["[{" * 100]


@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_a_large_text_is_refused_before_it_is_parsed(file: str) -> None:
    assert only(file, "é" * (2 * 1024 * 1024 + 1)).code == "W005"


def test_aliases_that_blow_up_are_refused() -> None:
    levels = [f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 10)}]" for n in range(9)]
    assert only("a.yaml", "\n".join(["l0: &l0 [lol, lol]", *levels])).code == "W005"
    text = "x" * 100_000
    assert only("a.yaml", f"a: &a {text}\nb: [{'*a, ' * 50}]").code == "W005"
    assert only("a.yaml", f"a: &a\n  ? {text}\n  : 1\nb: [{'*a, ' * 50}]").code == "W005"
    nested = "[" * 40 + "1" + "]" * 40
    assert only("a.yaml", f"a: &a {nested}\nb: {'[' * 40}*a{']' * 40}").code == "W005"


@pytest.mark.repeats
@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_too_many_values_are_refused(file: str) -> None:
    assert only(file, f"[{'1,' * 100_000}1]").code == "W005"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ('"\\ud800x"', "\ufffdx"),
    ],
)
def test_json_values_that_are_none_are_refused_and_kept_as_text(text: str, kept: str) -> None:
    found, all_problems = parse("a.json", f'{{"a": 1,\n"b": {text}}}')
    assert [(problem.line, problem.code) for problem in all_problems] == [(2, "W006")]
    assert found is not None
    assert found.value == {"a": 1, "b": kept}


@pytest.mark.parametrize(
    "text",
    [
        ".inf",
        "-.INF",
        ".nan",
        "1e999",
        "9" * 5000,
        "0x" + "f" * 5000,
        '"\\ud800"',
        "!!timestamp 2024-01-02",
        "!!binary aGk=",
        "!!set {a, b}",
        "!!omap [a: 1]",
        "!!int x",
        "!!int 1.5",
        "!!bool 1",
        "!!int true",
        "!!seq {}",
        "!mine {a: 1}",
        "!mine [1]",
        "!mine x",
        "!!python/object/apply:os.system [x]",
        "!<tag:example.org,2000:x> y",
    ],
)
def test_yaml_values_that_are_no_json_are_refused(text: str) -> None:
    found, _ = parse("a.yaml", f"a: 1\nb: {text}")
    problem = only("a.yaml", f"a: 1\nb: {text}")
    assert (problem.line, problem.code) == (2, "W006")
    assert found is not None
    assert json.loads(json.dumps(found.value, allow_nan=False)) == found.value


def test_messages_stay_short_whatever_they_quote() -> None:
    long = "x" * 2000
    for text in (f"!{long} 1", f"? {long}\n: 1\n? {long}\n: 2", f"*{long}", "1e" + "9" * 2000):
        assert len(str(only("a.yaml", text))) < 300


def test_keys_are_strings() -> None:
    text = "1: a\ntrue: b\n~: c\n? [x]\n: d\n!t e: f\nno: g\n'2': h\n<<: {i: j}\n"
    found, all_problems = parse("a.yaml", text)
    assert [problem.code for problem in all_problems] == ["W006"] * 6
    assert [problem.line for problem in all_problems] == [1, 2, 3, 4, 6, 9]
    assert "'1'" in all_problems[0].message and "integer" in all_problems[0].message
    assert found is not None
    assert found.value == {"1": "a", "true": "b", "~": "c", "no": "g", "2": "h"}


def test_all_problems_come_at_once_in_order_and_each_once() -> None:
    text = "a: .inf\nb: &b {c: 1, c: 2}\nd: [*b, *b]\na: 1\n2: x\n"
    assert problems("a.yaml", text) == [(1, "W006"), (2, "W003"), (4, "W003"), (5, "W006")]


# ------------------------------------------------------------------------------------ properties

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars.filter(lambda value: not (isinstance(value, float) and math.isinf(value))),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)


@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
@example({"\u2028": "\x85\x7f"}, None, False)
def test_json_reads_back_with_a_place_for_each_path(
    value: Any, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = document("a.json", text)
    assert found.value == value
    assert set(found.places) == paths(value)
    lines = text.split("\n")
    for path, place in found.places.items():
        rest = lines[place.line - 1][place.column - 1 :]
        if path and isinstance(path[-1], str):
            assert rest.startswith(json.dumps(path[-1], ensure_ascii=ascii_only))
        else:
            assert rest[:1] not in (" ", "\t", ",", ":", "")


@given(values)
def test_ascii_json_is_yaml_of_the_same_value_and_places(value: Any) -> None:
    text = json.dumps(value)
    as_json, as_yaml = document("a.json", text), document("a.yaml", text)
    assert as_yaml.value == as_json.value
    assert as_yaml.places == as_json.places


pieces = st.sampled_from(
    [*"ab01:-?[]{},&*!|>'\"%@`#<=.~\\/ \n\t\r\0", ": ", "- ", "? ", "---\n", "...\n", "\n  "]
    + ["%YAML 1.1\n", "%TAG ! x\n", "!!str ", "!<x> ", "\\ud800", "\\U00110000", "%zz", "%ff"]
    + ["&a ", "*a ", "<<: ", "null", ".nan", "1e999", "\ud800", "\u2028", "\x85", "\ufeff", "😀"]
)


@settings(max_examples=500)
@given(st.lists(pieces, max_size=40).map("".join) | st.text(st.characters(codec=None)))
@example("!%zz a")
@example('"\\x')
def test_no_text_raises(text: str) -> None:
    for file in ("a.json", "a.yaml"):
        found, all_problems = parse(file, text)
        assert found is not None or all_problems
        lines = text.count("\n") + text.count("\r") + 1
        assert all(1 <= problem.line <= lines for problem in all_problems)
        if found is not None:
            assert json.loads(json.dumps(found.value, allow_nan=False)) == found.value
            assert set(found.places) == paths(found.value)
