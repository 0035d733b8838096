import gc
import sys
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import ModuleType

import pytest

from turnloom.adapters.files import Modules, program
from turnloom.errors import DefinitionError, Diagnostic, UsageError

COUNTER = """
seen = []

def add(x):
    seen.append(x)
    return seen

def count():
    return len(seen)
"""

TYPES = """
from __future__ import annotations
import dataclasses, typing
import pydantic

@dataclasses.dataclass(slots=True)
class Point:
    x: int
    kind: typing.ClassVar[str] = "point"

class Line(pydantic.BaseModel):
    ends: list[Point]
    next: Line | None = None

def draw(line: Line, at: Point | None = None) -> Point:
    return line.ends[0]

def line() -> Line:
    return Line(ends=[Point(1)], next=Line(ends=[]))
"""


def folder(root: Path, **files: str) -> Path:
    path = root / "W"
    (path / "tools").mkdir(parents=True)
    for name, text in files.items():
        (path / f"{name.replace('__', '/')}.py").write_text(text)
    return path


def refused(path: Path, file: str, name: str = "f") -> Diagnostic:
    with pytest.raises(DefinitionError) as caught:
        Modules(path).function(file, name)
    (problem,) = caught.value.diagnostics
    assert "'W'" in str(caught.value)
    assert problem.message and problem.remedy
    return problem


def test_functions_of_one_file_share_a_module_and_loads_share_nothing(tmp_path: Path) -> None:
    path = folder(tmp_path, tools__counter=COUNTER)
    first, second = Modules(path), Modules(str(path))
    assert first.function("counter.py", "add")(1) == [1]
    assert first.function("tools/counter.py", "add")(2) == [1, 2]
    assert first.function("./counter.py", "count")() == 2
    assert second.function("counter.py", "count")() == 0


def test_the_root_comes_before_tools(tmp_path: Path) -> None:
    path = folder(
        tmp_path, a="def f():\n    return 'root'\n", tools__a="def f():\n    return 'tools'\n"
    )
    modules = Modules(path)
    assert modules.function("a.py", "f")() == "root"
    assert modules.function("tools/a.py", "f")() == "tools"


def test_each_load_sees_the_file_as_it_is_now(tmp_path: Path) -> None:
    path = folder(tmp_path, a="def f():\n    return 1\n")
    modules = Modules(path)
    assert modules.function("a.py", "f")() == 1
    (path / "a.py").write_text("def f():\n    return 2\n")
    assert modules.function("a.py", "f")() == 1
    assert Modules(path).function("a.py", "f")() == 2
    assert not (path / "__pycache__").exists()


def test_types_with_late_annotations_work(tmp_path: Path) -> None:
    modules = Modules(folder(tmp_path, a=TYPES))
    draw, line = modules.function("a.py", "draw"), modules.function("a.py", "line")
    drawn = draw(line())
    assert drawn.x == 1
    hints = typing.get_type_hints(draw)
    assert hints["return"] is type(drawn)
    assert typing.get_type_hints(hints["return"])["x"] is int
    assert line().model_dump()["next"] == {"ends": [], "next": None}


def test_the_registered_module_goes_with_its_load(tmp_path: Path) -> None:
    modules = Modules(folder(tmp_path, a=COUNTER))
    count = modules.function("a.py", "count")
    assert count.__module__ in sys.modules
    del modules
    gc.collect()
    assert count.__module__ not in sys.modules
    assert count() == 0


def test_a_module_of_the_same_name_elsewhere_is_not_touched(tmp_path: Path) -> None:
    found = Modules(folder(tmp_path, json="def dumps():\n    return 'mine'\n"))
    assert found.function("json.py", "dumps")() == "mine"
    assert sys.modules["json"].dumps([]) == "[]"


def test_threads_that_ask_together_get_one_module(tmp_path: Path) -> None:
    source = "import time\ntime.sleep(0.05)\n" + COUNTER
    modules = Modules(folder(tmp_path, a=source))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: modules.function("a.py", "add"), range(4)))
    assert len({id(function) for function in found}) == 1


def test_a_callable_object_an_async_function_and_a_class_are_functions(tmp_path: Path) -> None:
    source = "import functools\ng = functools.partial(int, '7')\nasync def h(): ...\nclass C: ...\n"
    modules = Modules(folder(tmp_path, a=source))
    assert modules.function("a.py", "g")() == 7
    assert all(callable(modules.function("a.py", name)) for name in ("h", "C"))


@pytest.mark.parametrize("file", ["gret.py", "greet", "tools/gret.py"])
def test_a_missing_file_lists_what_there_is(tmp_path: Path, file: str) -> None:
    problem = refused(folder(tmp_path, tools__greet="", other=""), file)
    assert (problem.file, problem.code) == ("W", "W040")
    assert "other.py, tools/greet.py" in problem.message
    assert "'tools/greet.py'" in problem.remedy


@pytest.mark.parametrize(
    "file", ["", ".", "tools", "agents.json", "tools/no-package/x.py", "tools\\a.py"]
)
def test_only_code_files_of_the_root_of_tools_and_of_packages_are_found(
    tmp_path: Path, file: str
) -> None:
    path = folder(tmp_path, tools__a="def f(): ...")
    (path / "agents.json").write_text("{}")
    (path / "tools" / "no-package").mkdir()
    (path / "tools" / "no-package" / "x.py").write_text("def f(): ...")
    assert refused(path, file).code == "W040"


def test_a_missing_folder_has_no_code(tmp_path: Path) -> None:
    assert "'a.py'" in refused(tmp_path / "W", "a.py").message


@pytest.mark.parametrize(
    "file",
    [
        "../x.py",
        "tools/../../x.py",
        "tools/../a.py",
        "..\\x.py",
        "/x.py",
        "//host/x.py",
        "C:\\x.py",
        "C:x.py",
        "a\0.py",
    ],
)
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, file: str) -> None:
    path = folder(tmp_path, a="def f(): ...")
    (tmp_path / "x.py").write_text("def f(): ...")
    assert refused(path, file).code == "W041"


def test_an_absolute_path_is_refused_even_into_the_folder(tmp_path: Path) -> None:
    path = folder(tmp_path, a="def f(): ...")
    assert refused(path, str(path / "a.py")).code == "W041"


def test_links_out_of_the_folder_are_refused_and_links_inside_are_not(tmp_path: Path) -> None:
    path = folder(tmp_path, a="def f(): ...")
    (tmp_path / "x.py").write_text("def f(): ...")
    (path / "out.py").symlink_to("../x.py")
    (path / "in.py").symlink_to("a.py")
    assert refused(path, "out.py").code == "W041"
    assert Modules(path).function("in.py", "f")() is None


def test_tools_that_are_a_link_out_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (tmp_path / "x.py").write_text("def f(): ...")
    (path / "tools").rmdir()
    (path / "tools").symlink_to(tmp_path)
    assert refused(path, "x.py").code == "W041"


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("x = 1\ndef f(:\n", 2, "SyntaxError"),
        ("\n\nimport no_such_module_here\n", 3, "ModuleNotFoundError: No module named"),
        ("from . import other\n", 1, "ImportError"),
        ("def g():\n    return 1 / 0\n\ng()\n", 2, "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError"),
        ("compile('(', 'elsewhere', 'exec')\n", 1, "SyntaxError"),
        ("x = '\0'\n", 1, "Error"),
    ],
)
def test_a_file_that_does_not_load_says_why_and_where(
    tmp_path: Path, source: str, line: int, words: str
) -> None:
    before = set(sys.modules)
    problem = refused(folder(tmp_path, tools__a=source), "a.py")
    assert (problem.file, problem.line, problem.code) == ("W/tools/a.py", line, "W042")
    assert words in problem.message
    assert not [name for name in set(sys.modules) - before if name.startswith("turnloom_code")]


def test_a_file_that_did_not_load_may_be_corrected(tmp_path: Path) -> None:
    path = folder(tmp_path, a="def f(:")
    modules = Modules(path)
    with pytest.raises(DefinitionError):
        modules.function("a.py", "f")
    (path / "a.py").write_text("def f(): ...")
    assert modules.function("a.py", "f")() is None


def test_code_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "a.py").write_bytes(b"x = 1\n# \xff\n")
    problem = refused(path, "a.py")
    assert (problem.file, problem.line, problem.code) == ("W/a.py", 2, "W001")


def test_a_byte_order_mark_in_code_is_no_error(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "a.py").write_bytes(b"\xef\xbb\xbfdef f(): return 1\n")
    assert Modules(path).function("a.py", "f")() == 1


@pytest.mark.parametrize(
    ("name", "values", "remedy"),
    [
        ("gret", ["'gret'", "greet, part"], "'greet'"),
        ("zzz", ["'zzz'"], ""),
        ("LIMIT", ["'LIMIT'", "'a.py'", "'int'"], ""),
        ("print", ["'print'"], ""),
        ("__class__", ["'__class__'"], ""),
        ("__builtins__", ["'__builtins__'"], ""),
    ],
)
def test_a_missing_function_lists_what_there_is(
    tmp_path: Path, name: str, values: list[str], remedy: str
) -> None:
    source = "LIMIT = 3\ndef greet(): ...\ndef part(): ...\ndef _own(): ...\n"
    problem = refused(folder(tmp_path, a=source), "a.py", name)
    assert (problem.file, problem.code) == ("W/a.py", "W043")
    assert [value for value in values if value not in problem.message] == []
    assert remedy in problem.remedy


HELPERS = "from .more import LIMIT\n\ndef clip(text): return text[:LIMIT]\n"
IMPORTS = {
    "from .helpers import clip": "clip",
    "from helpers import clip": "clip",
    "from . import helpers": "helpers.clip",
    "import helpers as h": "h.clip",
    "from tools import helpers": "helpers.clip",
    "from tools.helpers import clip": "clip",
    "import tools.helpers": "tools.helpers.clip",
}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("imports", IMPORTS)
def test_code_files_import_each_other(imports: str, late: bool, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/helpers.py").write_text(HELPERS)
    (tmp_path / "tools/more.py").write_text("LIMIT = 3\n")
    head, inner = ("", imports) if late else (imports, "pass")
    body = f"{head}\ndef f():\n    {inner}\n    return {IMPORTS[imports]}('abcdef')\n"
    (tmp_path / "tools/code.py").write_text(body)
    modules = Modules(tmp_path)
    assert modules.function("code.py", "f")() == "abc"
    (tmp_path / "tools/more.py").write_text("LIMIT = 1\n")
    again = Modules(tmp_path)
    assert again.function("code.py", "f")() == "a", "all files are loaded again together"
    assert modules.function("code.py", "f")() == "abc"


PACKAGE = {
    "tools/context/__init__.py": "from .shapes import LIMIT\nloads = []\n",
    "tools/context/shapes.py": "LIMIT = 3\n",
    "tools/context/clips.py": (
        "from . import loads\nfrom .shapes import LIMIT\nfrom ..words import WORD\n"
        "loads.append(WORD)\ndef clip(text): return text[:LIMIT]\n"
    ),
    "tools/platform/boxes.py": "raise RuntimeError('the library has a module of this name')\n",
    "tools/words.py": "WORD = 'w'\n",
    "plain/deep/clips.py": "def clip(text): return text[:3]\n",
}
PACKAGED = {
    "from .context.clips import clip": "clip",
    "from context.clips import clip": "clip",
    "from .context import LIMIT, clips": "clips.clip",
    "from context import clips": "clips.clip",
    "import context.clips as c": "c.clip",
    "import platform, tools.context.clips": "tools.context.clips.clip",
    "from plain.deep.clips import clip": "clip",
    "from workflows.Shop.tools.context.clips import clip": "clip",
    "from workflows.Shop.tools.context import clips": "clips.clip",
    "import workflows.Shop.tools.context.clips as c": "c.clip",
}


@pytest.mark.parametrize("imports", PACKAGED)
def test_code_files_import_packages_of_the_folder(imports: str, tmp_path: Path) -> None:
    root = tmp_path / "Shop"
    for file, text in PACKAGE.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    used = PACKAGED[imports]
    (root / "tools/code.py").write_text(f"{imports}\ndef f(): return {used}('abcdef')\n")
    modules = Modules(root)
    assert modules.function("code.py", "f")() == "abc"
    assert modules.members("tools/context/__init__.py")["LIMIT"] == 3
    assert modules.function("context/clips.py", "clip")("uvwxyz") == "uvw"
    loads = modules.members("tools/context/__init__.py")["loads"]
    assert loads == ["w"], "each file runs once"


def test_imports_from_the_root_and_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "shared.py").write_text("import json\nimport one\nseen = []\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('that is of the library')\n")
    (tmp_path / "tools/one.py").write_text(
        "from ..shared import seen\nimport shared\ndef add(x): shared.seen.append(x)\n"
    )
    (tmp_path / "tools/two.py").write_text("from shared import seen\ndef get(): return seen\n")
    modules = Modules(tmp_path)
    with pytest.raises(DefinitionError):  # as in any package: `seen` is not there yet
        modules.function("shared.py", "seen")
    (tmp_path / "shared.py").write_text("import json\nseen = []\nimport one\n")
    modules.function("one.py", "add")(1)
    assert modules.function("two.py", "get")() == [1]


def test_a_helper_that_does_not_load_is_named(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("from helpers import f\n")
    (tmp_path / "helpers.py").write_text("\n1 / 0\n")
    with pytest.raises(DefinitionError) as refused:
        Modules(tmp_path).members("code.py")
    (problem,) = refused.value.diagnostics
    assert (Path(problem.file).name, problem.line, problem.code) == ("helpers.py", 2, "W042")
    (tmp_path / "code.py").write_text("from .missing import f\n")
    with pytest.raises(DefinitionError) as refused:
        Modules(tmp_path).members("code.py")
    (problem,) = refused.value.diagnostics
    assert (Path(problem.file).name, problem.code) == ("code.py", "W042")


SLOW = """
import sys

gate = sys.modules["gate_of_this_test"]
gate.begun.set()
assert gate.go.wait(60)
VALUE = 1
"""

# A program that loads itself, in a thread that works for it.
CIRCLE = """
import asyncio
from turnloom.adapters.files import program

async def load():
    return await asyncio.to_thread(program, __file__)

asyncio.run(load())
"""


def test_a_program_that_another_thread_loads_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = ModuleType("gate_of_this_test")
    vars(gate).update(begun=Event(), go=Event())
    monkeypatch.setitem(sys.modules, gate.__name__, gate)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "quick.py").write_text("VALUE = 2\n")
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(program, str(tmp_path / "slow.py"))
        assert gate.begun.wait(60)
        others = [threads.submit(program, str(tmp_path / name)) for name in ("slow.py", "quick.py")]
        gate.go.set()
        assert [each.result(60)["VALUE"] for each in (first, *others)] == [1, 1, 2]


def test_a_program_that_loads_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "circle.py").write_text(CIRCLE)
    with pytest.raises(DefinitionError) as refused:
        program(str(tmp_path / "circle.py"))
    assert isinstance(refused.value.__cause__, UsageError)
