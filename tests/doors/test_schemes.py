"""URLs of settings: a scheme that is unknown is refused at once, and is never a file name."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.doors.forms import FORMS, answer
from tests.support.world import World
from turnloom import Loom, UsageError
from turnloom.wiring import ChatRecords

SECRET = "hunter2"
SETTINGS = ("store", "artifacts", "beliefs", "documents", "vectors", "scheduler")

# What no setting takes.
NOWHERE = (
    "mysql://ada:hunter2@host/db",
    "MySQL://ada:hunter2@host/db",
    "redis:hunter2",
    "x+y.z-1:hunter2",
    " postgresql://ada:hunter2@host/db",
    "://ada:hunter2@host",
    "host=localhost dbname=runs user=ada password=hunter2",
    " password = hunter2",
    "sqlite://hunter2.db",
    "sqlite:///hunter2.db",
    "sqlite:",
    "inline:hunter2",
    "memory:hunter2",
)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without settings of the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("TURNLOOM_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("url", NOWHERE)
def test_what_leads_nowhere_is_refused_when_the_app_is_made(
    setting: str, url: str, alone: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        Loom(**{setting: url})
    assert f"'{setting}'" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert not list(alone.iterdir())


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_environment_and_the_file_are_refused_too(
    setting: str, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "mysql://ada:hunter2@host/db"
    with monkeypatch.context() as patch:
        patch.setenv(f"TURNLOOM_{setting.upper()}", url)
        with pytest.raises(UsageError, match="'mysql'"):
            Loom()
    Path("turnloom.toml").write_text(f'{setting} = "{url}"\n', "utf-8")
    with pytest.raises(UsageError, match="'mysql'"):
        Loom()


async def test_a_url_that_cannot_be_read_is_refused(alone: Path) -> None:
    with pytest.raises(UsageError) as refused:
        async with Loom(store="postgresql://u:hunter2@[::1/db") as app:
            await app.runs()
    assert SECRET not in str(refused.value)


def test_what_is_given_as_an_object_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOOM_STORE", "mysql://host")
    monkeypatch.setenv("TURNLOOM_DOCUMENTS", "mysql://host")
    World().open()


@pytest.mark.parametrize(
    ("store", "file"),
    [
        ("runs.db", "runs.db"),
        ("a/runs.db", "a/runs.db"),
        ("sqlite:runs.db", "runs.db"),
        ("SQLite:runs.db", "runs.db"),
        ("sqlite:notes:old.db", "notes:old.db"),
        ("./notes:old.db", "notes:old.db"),
        ("c:runs.db", "c:runs.db"),
        ("postgresql", "postgresql"),
        ("Memory", "Memory"),
    ],
)
def test_file_names(store: str, file: str, alone: Path) -> None:
    async def use() -> None:
        async with Loom(store=store, engine=answer) as app:
            await FORMS["reaction"](app, alone)

    asyncio.run(use())
    assert Path(file).is_file()


def test_records_of_chats_are_refused_too(alone: Path) -> None:
    with pytest.raises(UsageError, match="'mysql'"):
        ChatRecords("mysql://ada:hunter2@host/db")
    assert not list(alone.iterdir())
