"""A folder with very many tools is looked through once, not once for each."""

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from turnloom import Loom
from turnloom.wiring import Folders

COUNT = 200
ALIKE = "def f{0}(a: int, b: str = 'x') -> str:\n    '''Number {0}.'''\n    return b\n"
UNLIKE = """
def one(a: int | str = 1): pass
def other(a: str | int = 1): pass
def true(a: int | bool = True): pass
def number(a: int | bool = 1): pass
def listed(a: list[int] = []): pass
"""


def folder(where: Path) -> str:
    (where / "tools").mkdir(parents=True)
    names = [*(f"f{n}" for n in range(COUNT)), "one", "other", "true", "number", "listed"]
    tools = [{"agent": "A", "file": "t.py", "function": name} for name in names]
    (where / "orchestrator.json").write_text('{"initial_agent": "A", "max_turns": 1}', "utf-8")
    agents = {"agents": {"A": {"system_message": "x", "engine": "scripted"}}}
    (where / "agents.json").write_text(json.dumps(agents), "utf-8")
    (where / "script.json").write_text('{"agents": {"A": ["hi"]}}', "utf-8")
    (where / "tools.json").write_text(json.dumps({"tools": tools}), "utf-8")
    code = "".join(ALIKE.format(n) for n in range(COUNT)) + UNLIKE
    (where / "tools" / "t.py").write_text(code, "utf-8")
    return str(where)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often functions are called meanwhile, by their names."""
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def test_each_tool_is_made_once_for_a_run(tmp_path: Path) -> None:
    path = folder(tmp_path / "Many")
    with counted() as calls:
        async with Loom(store="memory") as app:
            run = await app.start(path)
            await run.finished()
    assert calls["_callee"] == COUNT + 5
    assert 0 < calls["classic"] < 5
    assert calls["import_module"] < COUNT


def test_many_tools_cost_little_each(tmp_path: Path) -> None:
    path = folder(tmp_path / "Many")
    with counted() as calls:
        loaded, problems = Folders().examine(path)
    assert loaded and not problems and len(loaded.tools) == COUNT + 5
    assert 0 < calls["create_model"] <= 6
    assert 0 < calls["realpath"] < COUNT
    schemas = {name: tool.schema for name, tool in loaded.tools.items()}
    assert schemas["f7"].description == "Number 7."
    assert schemas["f7"].parameters == schemas["f8"].parameters
    assert schemas["f7"].parameters is not schemas["f8"].parameters
    first = {name: schemas[name].parameters["properties"]["a"] for name in ("one", "other")}
    assert [each["type"] for each in first["one"]["anyOf"]] == ["integer", "string"]
    assert [each["type"] for each in first["other"]["anyOf"]] == ["string", "integer"]
    assert schemas["true"].parameters["properties"]["a"]["default"] is True
    assert schemas["number"].parameters["properties"]["a"]["default"] is not True
