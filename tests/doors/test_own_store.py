"""A store that the package does not know, written from the page about stores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.console import matches, prepare, run, steps
from tests.docs.markdown import ROOT, fences
from tests.doors.forms import FORMS
from tests.support.folders import write_folder
from tests.support.warm import Warm, warm

__all__ = ["warm"]

SNIPPETS = ROOT / "docs" / "snippets" / "own_store"
CHILD = Path(__file__).with_name("own_store_child.py")

CHAT = {
    "agents.yaml": "agents: {First: {system_message: Hi.}, Second: {system_message: Hi.}}\n",
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: First, target_agent: Second, handoff_type: after_work}
          - {source_agent: Second, target_agent: terminate, handoff_type: after_work}
        """,
    "orchestrator.yaml": "initial_agent: First\n",
}


@pytest.mark.doors
def test_it_passes_all_suites() -> None:
    options = ("-p", "no:cacheprovider", "--import-mode=prepend", "-q")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(SNIPPETS)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def live(form: str, folder: Path, *crash: str) -> subprocess.CompletedProcess[str]:
    """One life of the program."""
    return subprocess.run(
        [sys.executable, str(CHILD), form, str(folder), *crash],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.doors
@pytest.mark.parametrize("form", FORMS)
def test_a_run_survives_a_kill(form: str, tmp_path: Path) -> None:
    write_folder(tmp_path, CHAT, "Chat")
    killed = live(form, tmp_path, "crash")
    assert killed.returncode == -9, killed.stderr
    resumed = live(form, tmp_path)
    assert (resumed.returncode, resumed.stdout) == (0, "run.finished\n"), resumed.stderr
    calls = (tmp_path / "calls.txt").read_text("utf-8").split()
    assert calls == ["first", "second", "second"], "what was stored is not done again"


@pytest.mark.doors
@pytest.mark.timeout(240)
def test_the_tour_runs_on_it(tmp_path: Path, warm: Warm) -> None:
    site = tmp_path / "site"
    entry = site / "journal_store-1.0.dist-info"
    entry.mkdir(parents=True)
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: journal_store\nVersion: 1.0\n")
    (entry / "entry_points.txt").write_text(
        "[turnloom.stores]\njournal = journal_store:open_store\n"
    )
    (site / "journal_store.py").write_bytes((SNIPPETS / "journal_store.py").read_bytes())
    place = tmp_path / "place"
    place.mkdir()
    prepare(place)
    tour = place / "docs" / "snippets" / "tour.py"
    text = tour.read_text("utf-8")
    own = text.replace('store="memory"', 'store=JournalStore(".turnloom/tour")')
    tour.write_text(f"from journal_store import JournalStore\n{own}", "utf-8")
    more = {"TURNLOOM_STORE": "journal:.turnloom/journal", "PYTHONPATH": str(site)}
    surprises: list[str] = []
    for fence in fences(ROOT / "README.md", "console"):
        for command, said in steps(fence):
            printed = run(command, place, warm, **more)
            if not matches(said, printed):
                surprises.append(f"`{command}` printed:\n{printed}\nThe page says:\n{said}")
            assert not os.path.exists(place / ".turnloom" / "turnloom.db")
    assert own != text and not surprises, "\n".join(surprises)
