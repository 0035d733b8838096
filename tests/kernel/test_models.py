"""Documents become models, or every problem with them is said where it stands."""

import re
from textwrap import dedent
from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from turnloom.adapters.files import parse
from turnloom.errors import Diagnostic, UsageError
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import Declared, DocumentEntry, Report


class Circle(Declared):
    type: Literal["circle"]
    radius: int = Field(ge=1)


class Square(Declared):
    type: Literal["square"]
    side: float
    tags: tuple[str, ...] = Field(default=(), strict=False)


class Note(Declared):
    text: str
    tone: Literal["kind", "plain"] = "kind"


class Drawing(Declared):
    name: str
    shapes: tuple[Annotated[Circle | Square, Field(discriminator="type")], ...] = Field(
        default=(), strict=False
    )
    note: Note | None = None
    notes: dict[str, Note] = {}

    @model_validator(mode="after")
    def _is_not_called_nothing(self) -> "Drawing":
        if self.name == "nothing":
            raise ValueError(["A drawing cannot be called nothing."])
        return self


def document(text: str) -> DeclarationFile:
    read, problems = parse("Flow/drawing.yaml", dedent(text).lstrip("\n"))
    assert read is not None and not problems
    return read


def problems_of(text: str) -> list[tuple[int, str, str, str]]:
    """Line, code, message and remedy of each problem that a drawing has."""
    report, read = Report("Flow"), document(text)
    drawing = report.model(read, DocumentEntry((), read.value), Drawing)
    assert drawing is not None or report.problems
    assert {problem.file for problem in report.problems} <= {"Flow/drawing.yaml"}
    return [(each.line, each.code, each.message, each.remedy) for each in report.problems]


def test_a_document_without_problems_becomes_its_model() -> None:
    report = Report("Flow")
    read = document("{name: a, shapes: [{type: circle, radius: 2}], note: {text: hi}}")
    drawing = report.model(read, DocumentEntry((), read.value), Drawing)
    assert drawing == Drawing(
        name="a", shapes=(Circle(type="circle", radius=2),), note=Note(text="hi")
    )
    assert report.problems == []


def test_what_is_declared_never_changes() -> None:
    with pytest.raises(UsageError):
        Note(text="a").text = "b"


@pytest.mark.parametrize(
    ("text", "line", "code", "values"),
    [
        ("name: a\nshaeps: []", 2, "W010", ["'shaeps'", "'shapes'"]),
        ("name: a\nzzz: []", 2, "W010", ["'zzz'", "name, shapes, note"]),
        ("shapes: []", 1, "W011", ["'name'"]),
        ("name: 5", 1, "W012", ["'name'", "5", "integer"]),
        ("name: yes\n", 1, None, []),
        ("name: a\nshapes: 3", 2, "W012", ["'shapes'", "3", "integer"]),
        ("name: nothing", 1, "W012", ["A drawing cannot be called nothing."]),
        ("name: a\nnote: hello", 2, "W012", ["'note'", "'hello'"]),
        ("name: a\nnote:\n  txet: b\n  text: c", 3, "W010", ["'text'"]),
        ("name: a\nnote: {text: b,\n  tone: plian}", 3, "W012", ["'plain'"]),
        ("name: a\nnote: {text: b,\n  tone: 7}", 3, "W012", ["'kind'", "'plain'"]),
        ("name: a\nnotes:\n  one: {text: b,\n    tne: c}", 4, "W010", ["'tone'"]),
        ("name: a\nnotes:\n  one:\n    tone: kind", 3, "W011", ["'text'"]),
        ("[1]", 1, "W012", ["[1]"]),
    ],
)
def test_a_problem_is_told_with_its_line_and_what_to_do(
    text: str, line: int, code: str | None, values: list[str]
) -> None:
    found = problems_of(text)
    if code is None:
        assert found == []
        return
    ((at, given, message, remedy),) = found
    assert (at, given) == (line, code)
    assert [value for value in values if value not in f"{message} {remedy}"] == []


@pytest.mark.parametrize(
    ("shape", "line", "code", "values"),
    [
        ("{type: circel,\n radius: 2}", 3, "W012", ["'circel'", "'circle'"]),
        ("{type: zzz,\n radius: 2}", 3, "W012", ["'circle'", "'square'"]),
        ("{radius: 2}", 3, "W011", ["'type'"]),
        ("{type: circle,\n radius: 0}", 4, "W012", ["'radius'", "0"]),
        ("{type: circle,\n radius: true}", 4, "W012", ["'radius'", "True", "boolean"]),
        ("{type: circle,\n radius: 2,\n side: 1}", 5, "W010", ["type, radius"]),
        ("{type: square,\n sied: 2,\n side: 1}", 4, "W010", ["'side'"]),
        ("{type: square, side: 1,\n tags: [a,\n 1]}", 5, "W012", ["2", "1", "integer"]),
        ("circle", 3, "W012", ["1", "'circle'"]),
    ],
)
def test_a_problem_inside_a_union_is_about_the_member_that_was_named(
    shape: str, line: int, code: str, values: list[str]
) -> None:
    ((at, given, message, remedy),) = problems_of(f"name: a\nshapes:\n- {shape}")
    assert (at, given) == (line, code)
    assert [value for value in values if value not in f"{message} {remedy}"] == []


def test_all_problems_of_a_document_are_told_at_once() -> None:
    found = problems_of(
        """
        nmae: a
        shapes:
          - {type: circle}
          - {type: oval}
          - {type: square, side: x}
        note:
          tone: loud
        """
    )
    assert sorted((line, code) for line, code, _, _ in found) == [
        (1, "W010"),
        (1, "W011"),
        (3, "W011"),
        (4, "W012"),
        (5, "W012"),
        (6, "W011"),
        (7, "W012"),
    ]


def named(text: str) -> tuple[dict[str, object], bool, list[tuple[int | str, ...]]]:
    report, read = Report("Flow"), document(text)
    found = report.named(read, report.part(read, "things"), "Thing")
    told = [(each.line, each.code, *re.findall(r"'\w+'", each.message)) for each in report.problems]
    return {name: each.value for name, each in found.entries.items()}, found.complete, told


def test_things_have_their_names_from_keys_or_from_themselves() -> None:
    as_mapping, complete, told = named("things:\n  a: {x: 1}\n  b: {name: b}")
    assert as_mapping == {"a": {"name": "a", "x": 1}, "b": {"name": "b"}}
    assert complete and not told
    as_list, complete, told = named("things:\n  - {name: a, x: 1}\n  - {name: b}")
    assert as_list == as_mapping
    assert complete and not told


def test_the_outer_key_may_be_left_out() -> None:
    assert named("a: {x: 1}") == named("things:\n  a: {x: 1}")
    assert named("- {name: a}") == named("things: [{name: a}]")


def test_nothing_may_stand_beside_the_outer_key() -> None:
    entries, _, told = named("things: {a: {}}\nthigs:\n  b: {}")
    assert list(entries) == ["a"]
    assert told == [(2, "W010", "'thigs'")]


@pytest.mark.parametrize("text", ["things:", "things: {}", "things: []", ""])
def test_no_things_are_no_problem(text: str) -> None:
    assert named(text) == ({}, True, [])


def test_a_name_is_given_once_and_the_first_one_stands() -> None:
    entries, complete, told = named("things:\n- {name: a, x: 1}\n- {name: a, x: 2}")
    assert entries == {"a": {"name": "a", "x": 1}}
    assert complete
    assert told == [(3, "W013", "'a'")]


def test_a_thing_cannot_have_two_names() -> None:
    _, _, told = named("things:\n  a:\n    name: b")
    assert told == [(3, "W012", "'a'", "'b'")]


@pytest.mark.parametrize("item", ["{x: 1}", "5", "{name: 7}", "{name: ''}", "null"])
def test_a_thing_without_a_name_hides_one(item: str) -> None:
    entries, complete, told = named(f"things:\n- {{name: a}}\n- {item}")
    assert list(entries) == ["a"]
    assert not complete
    assert told == [(3, "W011")]


def test_a_thing_of_the_wrong_shape_keeps_its_name() -> None:
    entries, complete, told = named("things:\n  a: 5\n  b:")
    assert entries == {"a": 5, "b": None}
    assert complete and not told


def test_things_that_are_neither_object_nor_array_are_refused() -> None:
    entries, complete, told = named("things: many")
    assert (entries, complete) == ({}, False)
    assert told == [(1, "W012", "'many'")]


def test_the_same_problem_is_noted_once_and_a_warning_is_no_error() -> None:
    report, read = Report("Flow"), document("a: 1")
    for _ in range(2):
        report.add(read, ("a",), "W012", "Bad.", "Mend it.")
        report.warn(read, ("a",), "W030", "Odd.")
    assert report.problems == [
        Diagnostic("Flow/drawing.yaml", 1, "W012", "Bad.", "Mend it."),
        Diagnostic("Flow/drawing.yaml", 1, "W030", "Odd.", severity="warning"),
    ]
    assert [str(each) for each in report.problems] == [
        "Flow/drawing.yaml:1: W012 Bad. Mend it.",
        "Flow/drawing.yaml:1: W030 Odd.",
    ]
