"""A migration that is killed at any of its writes, or that may not write, loses nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.folders import contents
from turnloom.adapters.files import replace_files, undo_replacement
from turnloom.errors import UsageError

FILES = {"context_variables.yaml": "variables: []\n", "handoffs.yaml": "handoffs: []\n"}
NEW = {**dict.fromkeys(FILES, "{}\n"), "derivations.py": "x = 1\n"}

# A child whose fuse blows at its nth write: just before it opens a file for writing, renames or
# removes one.
CHILD = """
import os, signal, sys
from turnloom.adapters.files import replace_files, undo_replacement
root, fuse, action = sys.argv[1], int(sys.argv[2]), sys.argv[3]
burnt = 0
def burn(event, args):
    global burnt
    writes = event in ("os.rename", "os.remove") or (
        event == "open" and args[2] is not None and args[2] & (os.O_WRONLY | os.O_RDWR)
    )
    if writes and root in str(args[0]):
        burnt += 1
        if burnt == fuse:
            os.kill(os.getpid(), signal.SIGKILL)
texts = {name: "{}\\n" for name in ("context_variables.yaml", "handoffs.yaml")}
sys.addaudithook(burn)
if action == "undo":
    undo_replacement(root)
else:
    replace_files(root, {**texts, "derivations.py": "x = 1\\n"}, "report")
"""


def killed(folder: Path, action: str) -> Iterator[int]:
    """Kill the action at each of its writes in turn, in a fresh state each time, until it ends."""
    for fuse in range(1, 60):
        command = [sys.executable, "-c", CHILD, str(folder), str(fuse), action]
        done = subprocess.run(command, capture_output=True, timeout=60)
        yield fuse
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            return
    raise AssertionError("It never ended.")


def fill(folder: Path) -> dict[str, bytes]:
    for name in os.listdir(folder):
        (folder / name).unlink()
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    return contents(folder)


def undo(folder: Path) -> None:
    """Undo what there is; a migration that was killed before its first write left nothing."""
    try:
        undo_replacement(str(folder))
    except UsageError as error:
        assert "no migration" in str(error)


def own(folder: Path) -> dict[str, bytes]:
    """The contents of a folder but for copies: backups, and what was never put in place."""
    found = contents(folder)
    return {name: each for name, each in found.items() if ".bak" not in name and name[0] != "."}


@pytest.mark.doors
def test_a_migration_killed_at_any_write_can_be_undone_and_repeated(tmp_path: Path) -> None:
    before, writes = fill(tmp_path), 0
    for writes in killed(tmp_path, "migrate"):
        undo(tmp_path)
        assert own(tmp_path) == before, writes
        replace_files(str(tmp_path), NEW, "report")
        assert {**own(tmp_path), "migration.txt": b""}.keys() == {*NEW, "migration.txt"}
        undo(tmp_path)
        assert fill(tmp_path) == before
    assert writes > 10


@pytest.mark.doors
def test_an_undo_killed_at_any_write_can_be_repeated(tmp_path: Path) -> None:
    before, writes = fill(tmp_path), 0
    replace_files(str(tmp_path), NEW, "report")
    for writes in killed(tmp_path, "undo"):
        undo(tmp_path)
        assert own(tmp_path) == before, writes
        fill(tmp_path)
        replace_files(str(tmp_path), NEW, "report")
    assert writes > 4


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become another")
def test_a_folder_that_may_not_be_written_stays_as_it_is(tmp_path: Path) -> None:
    before = fill(tmp_path)
    for each in (tmp_path, *tmp_path.parents):
        if not os.stat(each).st_mode & 0o001:
            each.chmod(each.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:  # as another user, to whom the modes apply
        status = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            replace_files(str(tmp_path), NEW, "report")
        except PermissionError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert contents(tmp_path) == before
