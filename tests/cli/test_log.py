"""The raw log at the command line."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Call, surroundings
from tests.support.html_documents import read_html
from tests.support.warm import Warm

# A flow without any branch.
LINE = """
from pydantic import BaseModel

from turnloom import Flow


class State(BaseModel, frozen=True):
    n: int = 0


async def count(state):
    return {"n": 1}


line = Flow("line", State).start_with(count)
"""


@pytest.fixture
def done(turnloom: Call, chat: str) -> Call:
    """The command line where one run has finished."""
    turnloom("run", chat, "--quiet")
    return turnloom


def test_the_log_is_printed_whole_and_by_kind(done: Call) -> None:
    events = [json.loads(line) for line in done("log", "last", "--json").out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["kind"], events[-1]["kind"]) == ("run.started", "run.finished")
    lines = done("log", "last").out.splitlines()
    assert len(lines) == len(events) and "run.started" in lines[0]
    assert '"workflow":"Chat"' in lines[0]

    said = done("log", "last", "--kind", "agent.text", "--kind", "run.finished", "--json").out
    assert {json.loads(line)["kind"] for line in said.splitlines()} == {
        "agent.text",
        "run.finished",
    }
    family = done("log", "last", "--kind", "turn").out.splitlines()
    assert len(family) == sum(event["kind"].startswith("turn.") for event in events) > 0


def test_kinds_that_do_not_exist_are_refused_with_what_was_meant(done: Call) -> None:
    assert "'agent.text'" in done("log", "last", "--kind", "agent.txt", code=2).err
    assert "run.started" in done("log", "last", "--kind", "qqqq", code=2).err
    assert "nobody" in done("log", "nobody", code=2).err


def test_a_turn_is_explained_without_its_prompt(done: Call) -> None:
    whole = done("explain", "last", "--turn", "1").out
    brief = done("explain", "last", "--turn", "1", "--brief").out
    assert whole.startswith(brief) and "Rhyme." in whole and "Rhyme." not in brief
    assert "--brief" in done("explain", "last", "--brief", code=2).err
    assert done("explain", "-h").out == done("explain", "--help").out
    assert done("-h").out == done("--help").out


def test_a_page_is_written_as_a_whole_or_printed(done: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("before", "utf-8")
    before = {*tmp_path.iterdir()}
    done("explain", "last", "--html", "page.html")
    assert {*tmp_path.iterdir()} == before
    assert "Rhyme." in read_html(page.read_text("utf-8")).text
    assert done("explain", "last", "--html", "-").out == page.read_text("utf-8")


def test_a_page_is_refused_before_anything_is_written(done: Call, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    assert "folder" in done("explain", "last", "--html", "pages", code=2).err
    assert "gone" in done("explain", "last", "--html", "gone/page.html", code=2).err
    for other in (("--turn", "1"), ("--variable", "done"), ("--route", "3"), ("--json",)):
        assert "--html" in done("explain", "last", "--html", "page.html", *other, code=2).err
    assert "nobody" in done("explain", "nobody", "--html", "page.html", code=2).err
    assert not (tmp_path / "page.html").exists()


def test_a_run_is_followed_up_to_its_end(
    turnloom: Call, chat: str, warm: Warm, tmp_path: Path
) -> None:
    script = tmp_path / chat / "script.yaml"
    script.write_text(script.read_text("utf-8").replace("user: [Go on., Enough.]", "user: []"))
    turnloom("run", chat, "--quiet")
    source, end = os.pipe()
    with open(os.devnull) as nothing, open(source, encoding="utf-8") as lines:
        words = ("log", "last", "--follow", "--json")
        at = nothing.fileno()
        follower = warm.start(words, tmp_path, surroundings({}), at, end, 2)
        os.close(end)
        kinds = (json.loads(line)["kind"] for line in lines)
        assert "run.paused" in kinds  # it has come so far
        turnloom("cancel", "last", "--reason", "enough")
        assert [*kinds][-1] == "run.cancelled"
    assert follower.wait() == 0


def test_routes_are_suggested_only_where_there_are_some(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "line.py").write_text(LINE, "utf-8")
    turnloom("run", "line.py", "--quiet")
    told = turnloom("explain", "last").out
    assert "--variable" in told and "--route" not in told
