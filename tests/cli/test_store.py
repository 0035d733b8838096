"""`turnloom store verify`."""

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.support.tables import tables_of


def test_what_is_damaged_is_listed_by_run(turnloom: Call, chat: str, tmp_path: Path) -> None:
    for _ in range(2):
        turnloom("run", chat)
    assert "Runs: 2," in turnloom("store", "verify").out
    ran = [each["run"] for each in json.loads(turnloom("runs", "--json").out)]
    with tables_of(tmp_path / ".turnloom" / "turnloom.db") as tables:
        tables.lose(ran[1], 1)
    done = turnloom("store", "verify", code=1)
    assert ran[1] in done.out and ran[0] not in done.out
    told = json.loads(turnloom("store", "verify", ran[1], "--json", code=1).out)
    assert told["runs"] == 1 and told["damaged"][0]["run"] == ran[1]
    assert "Runs: 1," in turnloom("store", "verify", ran[0]).out
    assert ran[1] in turnloom("explain", ran[1], code=1).err
    turnloom("store", "mend", code=2)
