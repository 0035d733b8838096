"""What a program builds out of values that make no sense is refused in our words."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import turnloom
from tests.support.folders import write_folder
from turnloom import UsageError
from turnloom.wiring import Folders

HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1.5, float("nan"), "", "x", b"x"),
    *([], [None], {}, {"no": 1}, {"type": "none"}, {1: 2}, object(), print),
)
MODELS = [
    each
    for each in (getattr(turnloom, name) for name in turnloom.__all__)
    if isinstance(each, type) and issubclass(each, BaseModel)
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_nothing_of_pydantic_is_seen(model: type[BaseModel]) -> None:
    asked = [{name: value} for name in model.model_fields for value in HOSTILE]
    for said in (*asked, {"not_a_field": 1}):
        try:
            model(**said)
        except UsageError as error:
            told = str(error)
            assert "pydantic" not in told and "nput should" not in told, told
            assert error.__cause__ is None and model.__name__ in told
    with pytest.raises(UsageError):
        model(*("positional",))
    with pytest.raises(UsageError):
        model.model_construct().not_a_field = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", ["5", "word", "{a: 1}"])
def test_a_key_that_takes_a_list_says_so(given: str, tmp_path: Path) -> None:
    files = {
        "orchestrator.yaml": "{initial_agent: A}",
        "agents.yaml": f"""
            A: {{system_message: Hi., engine: scripted, engines: {given}, components: {given}}}
            """,
        "context_variables.yaml": f"""
            definitions:
              x: {{type: boolean, source: {{type: derived, default: false, triggers: {given}}}}}
              y: {{type: string, enum: {given}, source: {{type: static, value: a}}}}
            agents: {{A: {{variables: {given}}}}}
            """,
        "script.yaml": "{agents: {A: [Hi.]}}",
    }
    _, problems = Folders().examine(write_folder(tmp_path, files))
    told = [problem.message for problem in problems]
    assert any("'triggers' must be a list" in each for each in told), told
    assert not any("nput should" in each for each in told), told
