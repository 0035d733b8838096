"""Where the code of hooks comes from: the folder's root, then its `tools`, and nowhere else."""

from pathlib import Path

import pytest

from tests.support.checks import problems
from tests.support.hooked import LINES, hook, hooked, outcomes, play
from turnloom import DefinitionError, Diagnostic, Loom
from turnloom.testing import ScriptedEngine


async def refused(folder: str) -> list[Diagnostic]:
    """What a start says, which is what a check says."""
    async with Loom(store="memory", engine=ScriptedEngine(LINES)) as app:
        with pytest.raises(DefinitionError) as error:
            await app.start(folder)
        assert await app.runs() == []
    assert list(error.value.diagnostics) == problems(folder)
    return list(error.value.diagnostics)


async def test_a_file_is_looked_for_in_the_root_and_then_in_tools(tmp_path: Path) -> None:
    hooks = [hook("before_chat", "f", file=file) for file in ("one.py", "two.py", "tools/one.py")]
    folder = Path(hooked(tmp_path, hooks, ""))
    (folder / "tools").mkdir()
    (folder / "one.py").write_text("def f(): return 'root'")
    (folder / "tools" / "one.py").write_text("def f(): return 'hidden by the root'")
    (folder / "tools" / "two.py").write_text("def f(): return 'tools'")
    given = [result for _, _, result in outcomes(await play(str(folder)))]
    assert given == ["root", "tools", "hidden by the root"]


@pytest.mark.parametrize("file", ["../out.py", "tools/../../out.py", "/etc/out.py", "C:\\out.py"])
async def test_a_path_that_climbs_out_is_refused(file: str, tmp_path: Path) -> None:
    (tmp_path / "out.py").write_text("def f(): raise SystemExit('it ran')")
    folder = hooked(tmp_path, [hook("before_chat", "f", file=file)], "")
    (problem,) = await refused(folder)
    assert (problem.code, problem.file) == ("W041", "Flow/tools.json")


@pytest.mark.parametrize("place", ["out.py", "tools/out.py"])
async def test_a_link_out_is_refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "out.py").write_text("raise SystemExit('it ran')")
    folder = Path(hooked(tmp_path, [hook("after_chat", "f", file="out.py")], ""))
    link = folder / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "out.py")
    assert {problem.code for problem in await refused(str(folder))} >= {"W041"}


async def test_every_problem_with_hooks_is_told_at_once(tmp_path: Path) -> None:
    hooks = [
        hook("before_chat", "f", file="../x.py"),
        hook("before_chat", "missing"),
        hook("before_chat", "f", file="none.py"),
        hook("before_chat", "wants"),
        hook("before_chat", "odd"),
    ]
    code = "def wants(a, context_variables): ...\ndef odd(a: 'Nowhere' = None): ..."
    codes = [problem.code for problem in await refused(hooked(tmp_path, hooks, code))]
    assert codes == ["W041", "W043", "W040", "W049", "W049"]
