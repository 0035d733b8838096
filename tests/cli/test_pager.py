"""Explanations in a pager, where a person reads them."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call, Sit

# Says that it pages, and shows how what it is given begins.
PAGER = """#!/bin/sh
echo "paged with $LESS"
{reads}
echo "end of pager"
"""


@pytest.fixture
def pager(tmp_path: Path) -> str:
    path = tmp_path / "pager"
    path.write_text(PAGER.format(reads="cat"), "utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_pager_shows_it_at_a_terminal(turnloom: Call, sit: Sit, chat: str, pager: str) -> None:
    turnloom("run", chat)
    seat = sit("explain", "last", PAGER=f"{pager} -x")
    assert seat.end() == 0
    came = seat.seen.partition("paged with FRX\n")[2].partition("end of pager")[0]
    assert "turn 4" in came and "--variable NAME" in came and "\x1b[" in came


def test_nothing_is_paged_where_it_is_not_wanted(
    turnloom: Call, sit: Sit, chat: str, pager: str
) -> None:
    turnloom("run", chat)
    seats = [
        sit("explain", "last", "--no-pager", PAGER=pager),
        sit("explain", "last", "--json", PAGER=pager),
        sit("explain", "last", PAGER=""),
        sit("explain", "last", PAGER="no-such-pager"),
        sit("explain", "last", PAGER="'"),
    ]
    for seat in seats:
        assert seat.end() == 0
        assert "paged" not in seat.seen and "turn" in seat.seen
    for words in ((), ("--json",)):
        assert "paged" not in turnloom("explain", "last", *words, PAGER=pager, FORCE_COLOR="1").out


def test_a_pager_may_be_left_and_interrupted(
    turnloom: Call, sit: Sit, chat: str, pager: str
) -> None:
    turnloom("run", chat)
    Path(pager).write_text(PAGER.format(reads="exec 0<&-"), "utf-8")
    seat = sit("explain", "last", PAGER=pager)
    assert seat.end() == 0 and "Error" not in seat.seen
    Path(pager).write_text(PAGER.format(reads="cat; echo all; read line < go"), "utf-8")
    go = Path(pager).with_name("go")
    turnloom(shell=f"mkfifo {go}")
    seat = sit("explain", "last", PAGER=pager)
    seat.until("all\n")
    seat.interrupt()
    go.write_text("on\n", "utf-8")
    seat.until("end of pager")
    assert seat.end() == 0 and "Interrupted" not in seat.seen
