"""`weft show`: schemas as they are shipped, settings that keep their secrets."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Call
from weft.cli.masking import masked
from weft.conversation.logic.schemas import FILES


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_printed_as_it_is_shipped(weft: Call, name: str) -> None:
    shipped = (ROOT / "src" / "weft" / "schemas" / f"{name}.json").read_text("utf-8")
    assert weft("show", "schema", name).out == shipped


def test_settings_are_shown_with_where_they_came_from(weft: Call, tmp_path: Path) -> None:
    (tmp_path / "weft.toml").write_text('store = "mine.db"\nslots = 5\n', "utf-8")
    secret = "postgresql://ada:s3cr3t/@word@db:5432/x?sslpassword=s3cr3t"
    done = weft("show", "config", "--store", "other.db", WEFT_DOCUMENTS=secret)
    assert done.out.splitlines() == [
        'store = "other.db"  # argument',
        'artifacts = ""  # default',
        "slots = 5  # weft.toml",
        'documents = "postgresql://ada:***@db:5432/x?sslpassword=***"  # environment',
        "documents_timeout = 5.0  # default",
        "strict = true  # default",
        'vectors = "sqlite:.weft/vectors.db"  # default',
    ]
    (tmp_path / "weft.toml").write_text(done.out, "utf-8")
    assert 'artifacts = ""  # weft.toml' in weft("show", "config").out.splitlines()
    (tmp_path / "weft.toml").write_text("slot = 5", "utf-8")
    assert "Did you mean 'slots'?" in weft("show", "config", code=2).err


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("mongodb://a:b@h1,h2:27017/x", "mongodb://a:***@h1,h2:27017/x"),
        ("mongodb+srv://:b@h/?retryWrites=true", "mongodb+srv://:***@h/?retryWrites=true"),
        ("postgresql://ada@db:5432/x", "postgresql://ada@db:5432/x"),
        (
            "postgresql://db:5432/x?user=a&Password=b&c=d",
            "postgresql://db:5432/x?user=a&Password=***&c=d",
        ),
        ("sqlite:.weft/documents", "sqlite:.weft/documents"),
        (5, 5),
    ],
)
def test_what_opens_a_door_is_masked(given: Any, shown: Any) -> None:
    assert masked(given) == shown


def test_wrong_use_is_refused(weft: Call) -> None:
    assert "Names: context_variables, orchestrator" in weft("show", "schema", code=2).err
    assert (
        "no schema of 'agent'. Did you mean 'agents'?"
        in weft("show", "schema", "agent", code=2).err
    )
    assert "takes no name" in weft("show", "config", "script", code=2).err
    assert "no store" in weft("show", "schema", "script", "--store", "x", code=2).err


def test_the_declarations_that_a_run_is_pinned_to(weft: Call, tmp_path: Path) -> None:
    folder = tmp_path / "Echo"
    folder.mkdir()
    (folder / "agents.yaml").write_text("Echo: {system_message: Say it again.}\n", "utf-8")
    (folder / "script.yaml").write_text("agents: {Echo: [hello]}\n", "utf-8")
    weft("run", str(folder), "--store", "runs.db")
    (folder / "agents.yaml").write_text("Echo: {system_message: Say nothing.}\n", "utf-8")
    shown = weft("show", "plan", "last", "--store", "runs.db").out
    assert "# agents.yaml\nEcho: {system_message: Say it again.}\n" in shown
    assert "# script.yaml" in shown
