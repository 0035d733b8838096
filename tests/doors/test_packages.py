"""Packages of others add stores, engines and schedulers, and cannot take the place of ours."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.doors.forms import FILES, FORMS, stored
from tests.support.folders import write_folder
from turnloom import DefinitionError, Loom, UsageError
from turnloom.wiring.schemes import GROUPS

PACKAGE = Path(__file__).parent / "outside_package"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the package was built and installed, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--target")
    command = [sys.executable, "-m", "pip", "install", *options, str(folder), str(PACKAGE)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def outside(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, importable by this process."""
    monkeypatch.syspath_prepend(str(installed))
    yield
    sys.modules.pop("loom_outside", None)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", [None, "grey"])
async def test_a_package_serves_every_form(
    form: str, model: str | None, outside: None, tmp_path: Path
) -> None:
    async with Loom(
        store=f"crate:{tmp_path}/crate",
        engine="parrot",
        model=model,
        scheduler=f"ledger:{tmp_path}/ledger.txt",
    ) as app:
        run = await FORMS[form](app, tmp_path)
        events = await stored(app, run)
    said = [event.data.text for event in events if event.kind == "agent.text"]
    assert [each.split(" by ")[1] for each in said] == [model or "heart"]
    assert (tmp_path / "crate" / "runs.db").is_file()
    assert (tmp_path / "ledger.txt").read_text("utf-8").startswith("woken")


def turnloom(installed: Path, where: Path, *words: str, **more: str) -> Any:
    """The command, as somebody runs it who installed the package."""
    known = {name: each for name, each in os.environ.items() if not name.startswith("TURNLOOM_")}
    return subprocess.run(
        [sys.executable, "-m", "turnloom", *words],
        cwd=where,
        env={**known, "PYTHONPATH": str(installed), **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.doors
def test_a_package_is_used_from_the_command_line(installed: Path, tmp_path: Path) -> None:
    write_folder(tmp_path, FILES)
    (tmp_path / "turnloom.toml").write_text('scheduler = "ledger:woken.txt"\n', "utf-8")
    ran = turnloom(
        installed, tmp_path, "run", "Flow", "--store", "crate:kept", "--engine", "parrot"
    )
    assert ran.returncode == 0, ran.stderr
    assert "Clerk by heart" in ran.stdout
    assert (tmp_path / "kept" / "runs.db").is_file()
    assert (tmp_path / "woken.txt").is_file()
    listed = turnloom(installed, tmp_path, "runs", "--json", TURNLOOM_STORE="crate:kept")
    assert listed.returncode == 0 and '"finished"' in listed.stdout
    without = turnloom(Path("nowhere"), tmp_path, "runs", "--store", "crate:kept")
    assert without.returncode == 2 and "'crate'" in without.stderr


@pytest.mark.doors
def test_an_agent_of_a_folder_chooses_an_engine_of_a_package(
    installed: Path, tmp_path: Path
) -> None:
    agents = "Clerk: {system_message: Hi., engine: {type: parrot}, model: red}\n"
    write_folder(tmp_path, {"agents.yaml": agents})
    assert turnloom(installed, tmp_path, "check", "Flow").returncode == 0
    ran = turnloom(installed, tmp_path, "run", "Flow", "--store", "memory")
    assert "Clerk by red" in ran.stdout
    refused = turnloom(Path("nowhere"), tmp_path, "check", "Flow")
    assert refused.returncode == 2 and "W050" in refused.stdout + refused.stderr


def install(where: Path, name: str, code: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """A package as an installer leaves it behind."""
    folder = where / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in points.items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    (where / f"{name}.py").write_text(dedent(code))


# A package that is broken: its code, and what it says its store is.
BROKEN = {
    "cannot be imported": ("import nothing_of_this_name", "bad:make"),
    "fails when it is imported": ("raise ValueError('hunter2')", "bad:make"),
    "has no such thing": ("", "bad:make"),
    "names nothing that is called": ("make = 5", "bad:make"),
}


@pytest.mark.parametrize("setting", ["store", "engine", "scheduler", "documents", "vectors"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_package_is_named(
    case: str, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, value = BROKEN[case]
    install(tmp_path, "bad", code, {GROUPS[setting]: {"odd": value}})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bad", raising=False)
    with pytest.raises(UsageError) as refused:
        Loom(**{"store": "memory", setting: "odd" if setting == "engine" else "odd:x"})
    sys.modules.pop("bad", None)
    assert "'bad'" in str(refused.value) and "hunter2" not in str(refused.value)


async def test_what_a_package_gives_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def make(url):\n    return object()\n\ndef fail(url):\n    raise ValueError(url)\n"
    install(tmp_path, "bad", code, {"turnloom.stores": {"odd": "bad:make", "off": "bad:fail"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    for scheme, part in (("odd", "snapshots"), ("off", "ValueError")):
        with pytest.raises(UsageError) as refused:
            await Loom(store=f"{scheme}://ada:hunter2@host").runs()
        assert "'bad'" in str(refused.value) and part in str(refused.value)
        assert "hunter2" not in str(refused.value)
    sys.modules.pop("bad", None)


def test_two_packages_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        install(tmp_path, name, "", {"turnloom.stores": {"odd": f"{name}:make"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="one, two"):
        Loom(store="odd:x")


async def test_ours_are_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "turnloom.stores": dict.fromkeys(("memory", "sqlite"), "thief:steal"),
        "turnloom.schedulers": {"inline": "thief:steal"},
        "turnloom.engines": {"pydantic_ai": "thief:steal", "scripted": "thief:steal"},
    }
    install(tmp_path, "thief", "raise AssertionError('it is imported')", points)
    monkeypatch.syspath_prepend(str(tmp_path))
    script = {**FILES, "script.yaml": "agents: {Clerk: [Fine.]}\n"}
    for store in ("memory", f"sqlite:{tmp_path}/runs.db"):
        async with Loom(store=store, scheduler="inline") as app:
            run = await app.start(write_folder(tmp_path, script))
            await run.finished()
    assert "thief" not in sys.modules


async def test_an_engine_that_nobody_adds_is_refused(tmp_path: Path) -> None:
    for name in ("none", "pydantic-ai", "scripted", ""):
        with pytest.raises(UsageError):
            Loom(store="memory", engine=name)
    agents = "Clerk: {system_message: Hi., engine: {type: none}}\n"
    async with Loom(store="memory") as app:
        with pytest.raises(DefinitionError) as refused:
            await app.start(write_folder(tmp_path, {"agents.yaml": agents}))
    assert [each.code for each in refused.value.diagnostics] == ["W050"]
