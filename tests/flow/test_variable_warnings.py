"""Warnings about variables that a program declares are told like those of folders."""

import json
import logging
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from tests.cli.conftest import Call, turnloom, warm
from turnloom import Flow, Loom, artifact_type
from turnloom.testing import ScriptedEngine

__all__ = ["turnloom", "warm"]

# The second listens to the first, which never changes.
VARIABLES = {
    "definitions": {
        "fixed": {"type": "string", "source": {"type": "static", "value": "a"}},
        "hears": {
            "type": "boolean",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "context_changed", "variable": "fixed", "equals": "b"}],
            },
        },
    }
}
PROGRAM = f"""
from pydantic import BaseModel
from turnloom import Flow

class State(BaseModel, frozen=True):
    text: str = ""

def step(state: State) -> dict[str, str]:
    return {{}}

flow = Flow("told", State, variables={VARIABLES!r}).start_with(step).finally_(step, name="end")
"""


class State(BaseModel, frozen=True):
    text: str = ""


@artifact_type
class News(BaseModel):
    text: str = ""


def begin(state: State) -> dict[str, str]:
    return {}


async def test_a_flow_and_a_board_warn_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "turnloom.check")
    async with Loom(store="memory", engine=ScriptedEngine({"reader": ["Read."]})) as app:
        built = Flow("told", State, variables=cast(Any, VARIABLES)).start_with(begin)
        await app.run(built.finally_(begin, name="end"), State())
        assert caplog.text.count("W038") == 1
        board = app.board("news", variables=cast(Any, VARIABLES))
        board.agent("reader").consumes(News)
        await board.publish(News())
        await board.run_until_idle()
        assert caplog.text.count("W038") == 2


def test_the_check_of_a_file_says_them(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(PROGRAM, "utf-8")
    for path in ("told.py", "told.py:flow"):
        (problem,) = json.loads(turnloom("check", path, "--json").out)
        assert (problem["file"], problem["code"]) == ("told.py", "W038")
        assert problem["severity"] == "warning"
