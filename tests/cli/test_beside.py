"""Keys, feedback and schedules on the command line."""

import json
from pathlib import Path

from tests.docs.markdown import ROOT
from tests.support.warm import Done, Warm

FLOWS = ROOT / "tests" / "schedules" / "flows.py"


def ok(warm: Warm, folder: Path, *words: str) -> str:
    done = warm.run(words, folder, {})
    assert done.code == 0, done
    return done.out


def test_keys(warm: Warm, tmp_path: Path) -> None:
    assert warm.run(["keys", "list"], tmp_path, {}).code == 0  # there is no store yet
    words = ("keys", "create", "--user", "ann", "--role", "admin", "--scope", "keys", "--json")
    made = json.loads(ok(warm, tmp_path, *words, "--expires", "1d"))
    assert made["token"].startswith(f"tlk_{made['key']['id']}_")
    token = ok(warm, tmp_path, "keys", "create").strip()
    (latest, first) = json.loads(ok(warm, tmp_path, "keys", "list", "--json"))
    assert token.startswith(f"tlk_{latest['id']}_") and first == made["key"]
    assert made["token"] not in ok(warm, tmp_path, "keys", "list")
    ok(warm, tmp_path, "keys", "revoke", first["id"])
    assert warm.run(["keys", "revoke", "x"], tmp_path, {}).code == 2
    for wrong in (["--user", "a\nb"], ["--scope", "all"], ["--expires", "never"], ["--role", "x"]):
        assert warm.run(["keys", "create", *wrong], tmp_path, {}).code == 2
    assert len(json.loads(ok(warm, tmp_path, "keys", "list", "--json"))) == 2


def test_feedback(warm: Warm, tmp_path: Path) -> None:
    ok(warm, tmp_path, "run", str(FLOWS), "--quiet")
    ok(warm, tmp_path, "feedback", "last", "--score", "0.4", "--comment", "a\x1b[2Jb")
    ok(warm, tmp_path, "feedback", "last", "--label", "wrong", "--name", "verdict")
    found = json.loads(ok(warm, tmp_path, "feedback", "last", "--json"))
    assert [(each["name"], each["score"], each["label"]) for each in found] == [
        ("quality", 0.4, None),
        ("verdict", None, "wrong"),
    ]
    assert "\x1b" not in ok(warm, tmp_path, "feedback", "last")
    for wanted, count in (("quality<0.5", 1), ("verdict=right", 0)):
        listed = json.loads(ok(warm, tmp_path, "runs", "--feedback", wanted, "--json"))
        assert len(listed) == count
    for wrong in (["--comment", "x"], ["--score", "nan"], ["--turn", "9", "--score", "1"]):
        assert warm.run(["feedback", "last", *wrong], tmp_path, {}).code == 2


def test_schedules(warm: Warm, tmp_path: Path) -> None:
    (tmp_path / "turnloom.toml").write_text(
        f'[[schedule]]\nname = "daily"\nworkflow = "{FLOWS}"\ncron = "0 7 * * *"\n'
    )
    listed = json.loads(ok(warm, tmp_path, "schedule", "list", "--json"))
    assert [each["schedule"]["name"] for each in listed["schedules"]] == ["daily"]
    assert not json.loads(ok(warm, tmp_path, "schedule", "run", "--json"))
    (fired,) = json.loads(ok(warm, tmp_path, "schedule", "run", "daily", "--json"))
    (run,) = json.loads(ok(warm, tmp_path, "runs", "--json"))
    assert (run["run"], run["status"]) == (fired["run"], "finished")
    assert warm.run(["schedule", "cancel", "x"], tmp_path, {}).code == 1
    (tmp_path / "turnloom.toml").write_text('[[schedule]]\ncron = "x"\n')
    done = warm.run(["schedule", "list"], tmp_path, {})
    assert isinstance(done, Done) and done.code == 2 and "turnloom.toml:1: W200" in done.err
