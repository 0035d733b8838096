"""What an agent's prompt shows of the variables: this and nothing else, whatever they hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.strategies import json_values
from turnloom.agents.logic.views import view_of
from turnloom.agents.spec import Agent, RunState
from turnloom.assembly.events import Withheld
from turnloom.assembly.logic import View
from turnloom.kernel.values import Json
from turnloom.variables.logic.exposure import HEADER, names_of
from turnloom.variables.spec import Exposure, VariableDefinition, Variables

VALUES: dict[str, Json] = {"a": 1, "b": "two", "n": None, "long": "x" * 30, "list": [1, 2, 3, 4]}


def show(told: str = "Hi.", limit: int | None = None, **said: Any) -> View:
    source = {"type": "derived"}
    definitions = {
        name: VariableDefinition.model_validate(
            {"name": name, "max_chars": limit, "source": source}
        )
        for name in VALUES
    }
    variables = Variables(
        definitions=definitions, exposures={"A": Exposure.model_validate({"name": "A", **said})}
    )
    state = RunState("r", values=dict(VALUES), absent={"gone": "production has none"})
    return view_of(Agent(name="A", system_message=told), variables, state)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"variables": ["b", "a"]}, f'Hi.\n\n{HEADER}\n- b: "two"\n- a: 1'),
        ({"variables": ["a"], "header": "Known"}, "Hi.\n\nKnown\n- a: 1"),
        ({"variables": ["gone", "b", "a"], "header": ""}, 'Hi.\n\n- b: "two"\n- a: 1'),
        ({"variables": ["a"], "placement": "prepend"}, f"{HEADER}\n- a: 1\n\nHi."),
        ({"variables": ["a"], "placement": "replace"}, f"{HEADER}\n- a: 1"),
        ({"variables": ["n"]}, f"Hi.\n\n{HEADER}\n- n: null"),
        (
            {"variables": ["n", "never"], "null_label": "(none)"},
            f"Hi.\n\n{HEADER}\n- n: (none)\n- never: (none)",
        ),
        ({"variables": ["gone", "a"]}, f"Hi.\n\n{HEADER}\n- a: 1"),
        ({"template": "For {b}: {a}, {b}."}, 'Hi.\n\nFor "two": 1, "two".'),
        ({"template": "{a}", "header": "Known"}, "Hi.\n\nKnown\n1"),
        ({"template": "{a}", "placement": "prepend"}, "1\n\nHi."),
        ({"template": "{a}", "placement": "replace"}, "1"),
        ({"template": "{gone} and {n}", "null_label": "-"}, "Hi.\n\n- and -"),
        ({"template": "{ a } {{b}} {} {a.b} {0} }{ {a"}, 'Hi.\n\n{ a } {"two"} {} {a.b} {0} }{ {a'),
        ({"template": "{unknown} {a!r} {a:>3}"}, "Hi.\n\n{unknown} {a!r} {a:>3}"),
        ({"template": "{n}", "null_label": ""}, "Hi."),
        ({"template": "{n}", "null_label": "", "placement": "replace"}, "Hi."),
        ({"template": "No variable."}, "Hi.\n\nNo variable."),
        ({"template": ""}, "Hi."),
        ({}, "Hi."),
    ],
)
def test_an_exposure_is_shown_as_it_says(said: dict[str, Any], text: str) -> None:
    shown = show(**said)
    assert shown.text == text
    assert "".join(piece.text for piece in shown.pieces) == text


@pytest.mark.parametrize("placement", ["append", "prepend", "replace"])
def test_without_instructions_no_empty_paragraph_stands_there(placement: str) -> None:
    assert show("", variables=["a"], placement=placement).text == f"{HEADER}\n- a: 1"


def test_every_piece_names_the_variable_or_the_declaration_it_is_from() -> None:
    shown = show(template="For {b}: {a}.")
    assert [(piece.kind, piece.origin) for piece in shown.pieces] == [
        ("instruction", "agents.A"),
        ("instruction", "context_variables.agents.A"),
        ("variable", "context_variables.b"),
        ("instruction", "context_variables.agents.A"),
        ("variable", "context_variables.a"),
        ("instruction", "context_variables.agents.A"),
    ]


def test_what_is_suppressed_is_withheld_with_the_reason() -> None:
    expected = (Withheld("context_variables.gone", "suppressed", "production has none"),)
    assert show(variables=["gone", "a"]).withheld == expected
    assert show(template="{gone} {a}").withheld == expected


def test_a_value_beyond_its_limit_is_cut_and_that_is_recorded() -> None:
    shown = show(limit=10, variables=["long", "list", "b"])
    assert shown.text.endswith('\n- long: "xxxxxxxxxx…"\n- list: [1,2,3,4]\n- b: "two"')
    assert shown.withheld == (
        Withheld(
            "context_variables.long", "over_budget", "10 of 30 characters are shown (max_chars)"
        ),
    )
    assert '- list: "[1,2…"' in show(limit=4, variables=["list"]).text


def test_names_of_a_template_are_its_places() -> None:
    exposure = Exposure(name="A", template="{b} {a} {b} {{c}} { d } {1}")
    assert names_of(exposure) == ("b", "a", "c")


@given(
    st.text(max_size=40) | st.lists(st.sampled_from(["{a}", "{", "}", "{b", "x"])).map("".join),
    st.dictionaries(st.sampled_from(["a", "b"]), json_values),
    st.sampled_from(["append", "prepend", "replace"]),
    st.text(max_size=5),
)
def test_nothing_can_raise_and_no_value_leaves_its_line(
    template: str, values: dict[str, Json], placement: str, null_label: str
) -> None:
    exposure = Exposure.model_validate(
        {"name": "A", "template": template, "placement": placement, "null_label": null_label}
    )
    state = RunState("r", values=values)
    shown = view_of(Agent(name="A"), Variables(exposures={"A": exposure}), state)
    for piece in shown.pieces:
        if piece.kind == "variable" and piece.text != null_label:
            assert len(piece.text.strip("\n").splitlines()) <= 1
