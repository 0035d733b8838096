"""`turnloom store verify`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Call


def test_what_is_damaged_is_listed_by_run(turnloom: Call, chat: str, tmp_path: Path) -> None:
    for _ in range(2):
        turnloom("run", chat)
    assert "Runs: 2," in turnloom("store", "verify").out
    ran = [each["run"] for each in json.loads(turnloom("runs", "--json").out)]
    with closing(sqlite3.connect(tmp_path / ".turnloom" / "turnloom.db")) as file, file:
        file.execute("DELETE FROM batches WHERE pos = (SELECT pos FROM batches LIMIT 1 OFFSET 1)")
    done = turnloom("store", "verify", code=1)
    assert ran[1] in done.out and ran[0] not in done.out
    told = json.loads(turnloom("store", "verify", ran[1], "--json", code=1).out)
    assert told["runs"] == 1 and told["damaged"][0]["run"] == ran[1]
    assert "Runs: 1," in turnloom("store", "verify", ran[0]).out
    assert ran[1] in turnloom("explain", ran[1], code=1).err
    turnloom("store", "mend", code=2)
