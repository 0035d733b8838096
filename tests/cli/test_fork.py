"""`turnloom fork` in a terminal."""

import json
from pathlib import Path

from tests.cli.asking import VERDICT, asking
from tests.cli.conftest import Call
from tests.support.folders import write_folder


def position(turnloom: Call, kind: str) -> str:
    lines = turnloom("log", "last", "--json").out.splitlines()
    return str(next(each["seq"] for each in map(json.loads, lines) if each["kind"] == kind))


def test_a_fork_gets_another_answer_and_waits_for_permission(
    turnloom: Call, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path, asking(VERDICT, user=[{"verdict": "accepted"}]), "Asks")
    turnloom("run", folder, "--unattended")
    original = json.loads(turnloom("runs", "--json").out)[0]["run"]
    at = position(turnloom, "run.paused")
    done = turnloom("fork", original, "--at", at, "--answer", "refused")
    assert f"is a fork of run {original}" in done.out and "effect asks" in done.out
    assert "allow" in turnloom("questions").out
    assert "Answer recorded" in turnloom("answer", "last", "allow").out
    done = turnloom("resume", "last")
    assert 'ask returned {"verdict":"refused"}' in done.out and "Thank you." in done.out
    done = turnloom("fork", original, "--at", at, "--answer", "accepted", "--json")
    kinds = [json.loads(line)["kind"] for line in done.out.splitlines()]
    assert kinds[-1] == "run.finished"
    assert len(json.loads(turnloom("runs", "--json").out)) == 3
    assert "forked" in turnloom("explain", "last").out
    assert original in turnloom("log", "last", "--kind", "run.forked").out
    turnloom("store", "verify")


def test_what_cannot_be_forked_so_is_said(turnloom: Call, tmp_path: Path) -> None:
    turnloom("run", write_folder(tmp_path, asking(VERDICT), "Asks"))
    at = position(turnloom, "run.paused")
    wrong = (
        ("--at", "99"),
        ("--at", at, "--answer", "perhaps"),
        ("--at", at, "--set", "tone"),
        ("--at", at, "--set", "tone=cool"),
        ("--at", at, "--tools", "some"),
    )
    for options in wrong:
        assert "Error" in turnloom("fork", "last", *options, code=2).err
    assert len(json.loads(turnloom("runs", "--json").out)) == 1
