"""`turnloom store`: migrate, copy, verify, prune, removals."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Call
from tests.support.tables import tables_of

OLDER = """
    DROP TABLE api_keys; DROP TABLE audit; DROP TABLE feedback; DROP TABLE firings;
    DROP TABLE planned_starts; DROP TABLE jobs; DROP TABLE job_results;
    DROP TABLE removals; DROP TABLE removed_runs;
    DROP INDEX results_of; ALTER TABLE results DROP COLUMN user; PRAGMA user_version = 13;
"""


def test_an_older_file_is_refused_until_it_is_migrated(
    turnloom: Call, chat: str, tmp_path: Path
) -> None:
    migrate = ("store", "migrate")
    assert json.loads(turnloom(*migrate, "--json").out)["steps"] == []
    turnloom("run", chat)
    file = tmp_path / ".turnloom" / "turnloom.db"
    with closing(sqlite3.connect(file)) as older:
        older.executescript(OLDER)
    assert "turnloom store migrate" in turnloom("runs", code=1).err
    assert "turnloom store migrate" in turnloom("run", chat, code=1).err
    names = {14: "removals", 15: "beside", 16: "jobs"}
    steps = [{"version": version, "name": name} for version, name in names.items()]
    would = json.loads(turnloom(*migrate, "--dry-run", "--json").out)
    assert would == {"steps": steps, "dry_run": True}
    assert "14 removals" in turnloom(*migrate).out
    assert json.loads(turnloom(*migrate, "--json").out) == {"steps": [], "dry_run": False}
    assert len(json.loads(turnloom("runs", "--json").out)) == 1
    with closing(sqlite3.connect(file)) as later:
        later.execute("PRAGMA user_version = 99")
    turnloom(*migrate, code=1)
    turnloom(*migrate, "--store", "nowhere.db", code=2)
    turnloom(*migrate, "--store", "memory", code=2)


def test_runs_are_copied_and_verified(turnloom: Call, chat: str, tmp_path: Path) -> None:
    for _ in range(2):
        turnloom("run", chat)
    turnloom("run", chat, "--app-id", "acme")
    file = ".turnloom/turnloom.db"
    (last, first) = [each["run"] for each in json.loads(turnloom("runs", "--json").out)]
    copy = ("store", "copy", file, "other.db")
    one = json.loads(turnloom(*copy, "--run", first, "--json").out)
    assert (one["copied"], one["refused"]) == (1, [])
    assert "Copied: 2, continued: 0, there before: 1, refused: 0." in turnloom(*copy).out
    verified = json.loads(turnloom("store", "verify", "--store", "other.db", "--json").out)
    assert (verified["runs"], verified["damaged"]) == (3, [])
    with tables_of(tmp_path / "other.db") as tables:
        tables.rewrite(last, lambda data: data.replace(b"started", b"begun__"))
    assert turnloom("store", "verify", "--store", "other.db", code=1).out
    refused = json.loads(turnloom(*copy, "--json", code=1).out)
    assert (refused["same"], [each["run"] for each in refused["refused"]]) == (2, [last])
    for wrong in (
        ("store", "copy", file),
        ("store", "copy", file, file),
        ("store", "copy", "nowhere.db", "other.db"),
        ("store", "copy", file, "memory"),
        ("store", "copy", "memory", file),
        (*copy, "--run", first, "--before", "2026-01-31"),
        (*copy, "--status", "sleeping"),
        (*copy, "--run", "nothing"),
    ):
        assert turnloom(*wrong, code=2).err


def test_a_person_is_removed_and_that_is_on_record(
    turnloom: Call, chat: str, tmp_path: Path
) -> None:
    assert json.loads(turnloom("store", "removals", "--json").out) == []
    turnloom("run", chat, "--user", "ann")
    turnloom("run", chat, "--user", "bob")
    prune = ("store", "prune", "--user", "ann", "--by", "admin", "--json")
    done = json.loads(turnloom(*prune).out)
    assert (done["runs"], done["results"], done["kept"]) == (1, 0, {})
    (left,) = json.loads(turnloom("runs", "--json").out)
    assert left["user"] == "bob"
    (record,) = json.loads(turnloom("store", "removals", "--json").out)
    assert (record["by"], record["what"], record["runs"]) == ("admin", "user 'ann'", 1)
    assert "admin" in turnloom("store", "removals").out


def test_runs_whose_time_is_over(turnloom: Call, chat: str, tmp_path: Path) -> None:
    turnloom("run", chat)
    prune = ("store", "prune", "--retention")
    turnloom(*prune, code=2)
    (tmp_path / "turnloom.toml").write_text('retention = "1h"\n')
    assert "Runs: 0," in turnloom(*prune).out
    with tables_of(tmp_path / ".turnloom" / "turnloom.db") as tables:
        tables.execute("UPDATE {}runs SET ended = ended - 7200000000")
    assert "Runs: 1," in turnloom(*prune).out
    for wrong in (
        (*prune, "--dry-run"),
        (*prune, "--app-id", "acme"),
        (*prune, "--user", "ann"),
        ("store", "prune", "--user", "ann", "--status", "failed"),
    ):
        turnloom(*wrong, code=2)
