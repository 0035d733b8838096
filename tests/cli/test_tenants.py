"""On the command line, the runs of another tenant are as runs that do not exist."""

import json
from pathlib import Path

import pytest

from tests.cli.asking import asking
from tests.cli.conftest import Call
from tests.support.folders import write_folder

UNKNOWN = "neverbegun"
CANARY = "canary-of-ann"

# Commands that are told which run is meant.
OF_RUNS = [
    ("explain", "RUN"),
    ("explain", "RUN", "--turn", "1"),
    ("explain", "RUN", "--json"),
    ("show", "plan", "RUN"),
    ("show", "graph", "RUN"),
    ("answer", "RUN", "accepted"),
    ("cancel", "RUN"),
    ("resume", "RUN"),
]


@pytest.fixture
def run(turnloom: Call, tmp_path: Path) -> str:
    """A run of `ann` that waits for an answer."""
    write_folder(tmp_path, asking(payload={"title": CANARY}), "Asks")
    turnloom("run", "Asks", "--app-id", "ann")
    (found,) = json.loads(turnloom("runs", "--app-id", "ann", "--json").out)
    return found["run"]


def test_it_is_not_found(turnloom: Call, run: str) -> None:
    before = turnloom("explain", run, "--app-id", "ann", "--json").out
    assert CANARY in before
    for words in OF_RUNS:
        said = []
        for id in (UNKNOWN, run, run[:4]):
            line = [id if word == "RUN" else word for word in words]
            done = turnloom(*line, "--app-id", "bob", code=2)
            assert CANARY not in done.out + done.err
            said.append((done.out, done.err.replace(id, "ID")))
        assert len({*said}) == 1, words
    assert turnloom("explain", run, "--app-id", "ann", "--json").out == before


def test_it_is_not_listed(turnloom: Call, run: str) -> None:
    assert json.loads(turnloom("runs", "--app-id", "bob", "--json").out) == []
    assert run not in turnloom("runs", "--app-id", "bob").out
    for words in OF_RUNS:
        line = ["last" if word == "RUN" else word for word in words]
        done = turnloom(*line, "--app-id", "bob", code=2)
        assert run not in done.out + done.err and CANARY not in done.out + done.err


def test_it_takes_its_answer_from_its_tenant(turnloom: Call, run: str) -> None:
    for words in (("answer", run, "refused"), ("cancel", run)):
        turnloom(*words, "--app-id", "bob", code=2)
    turnloom("answer", run, "accepted", "--app-id", "ann")
    assert "accepted" in turnloom("resume", run, "--app-id", "ann").out
    (found,) = json.loads(turnloom("runs", "--app-id", "ann", "--json").out)
    assert found["status"] == "finished"
