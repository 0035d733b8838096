"""The public names are exactly `turnloom.__all__`, and importing them does nothing else."""

import json
import os
import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest

from tests.gates.conftest import ROOT, Tree

NAMES = """
    import json, types
    import turnloom

    public = [name for name in dir(turnloom) if not name.startswith("_")]
    values = {name: getattr(turnloom, name, None) for name in {*public, *turnloom.__all__}}
    modules = [name for name, value in values.items() if isinstance(value, types.ModuleType)]
    print(json.dumps({
        "all": list(turnloom.__all__),
        "public": [name for name in public if name not in modules or name in turnloom.__all__],
        "missing": [name for name in turnloom.__all__ if not hasattr(turnloom, name)],
        "unknown": hasattr(turnloom, "no_such_name"),
    }))
"""

# What turnloom itself does while it is imported. A call belongs to the innermost frame that is not
# the standard library's; what the import system does to find and read modules belongs to nobody.
EFFECTS = """
    import builtins, json, logging, os, sys, sysconfig, threading

    ALWAYS = ("socket.", "sqlite3.connect", "subprocess.Popen", "os.putenv", "os.fork", "os.exec")
    TURNLOOMS = ("open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename")
    stdlib = sysconfig.get_paths()["stdlib"]
    third_party = (sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"])
    effects, reading = [], False

    def culprit(frame):
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<frozen importlib") or file.startswith("<frozen zipimport"):
                return None
            inside = file.startswith(stdlib) and not file.startswith(third_party)
            if not inside and not file.startswith("<frozen") and frame.f_code is not watch.__code__:
                return frame.f_globals.get("__name__", "").partition(".")[0]
            frame = frame.f_back
        return None

    def watch(event, args):
        global reading
        if reading:
            return
        reading = True
        try:
            if event.startswith(ALWAYS):
                effects.append(event)
            elif event in TURNLOOMS and culprit(sys._getframe()) == "turnloom":
                effects.append(f"{event} {args[0]!r}")
        finally:
            reading = False

    class Environment(type(os.environ)):
        def __getitem__(self, key):
            if culprit(sys._getframe(1)) == "turnloom":
                effects.append(f"environment {key!r}")
            return super().__getitem__(key)

        def __iter__(self):
            if culprit(sys._getframe(1)) == "turnloom":
                effects.append("environment")
            return super().__iter__()

    os.environ.__class__ = Environment
    before = (logging.root.level, len(logging.root.handlers))
    sys.addaudithook(watch)

    import turnloom
    from turnloom import Loom

    reading = True
    if (logging.root.level, len(logging.root.handlers)) != before:
        effects.append("logging of the root")
    if logging.getLogger("turnloom").level or logging.getLogger("turnloom").handlers:
        effects.append("logging of turnloom")
    effects += [f"thread {thread.name}" for thread in threading.enumerate()[1:]]
    print(json.dumps(effects))
"""

PLANTS = {
    "open ": "open(__file__).close()",
    "environment 'HOME'": "import os\nos.environ.get('HOME')",
    "environment 'LANG'": "import os\nos.getenv('LANG')",
    "os.putenv": "import os\nos.environ['X'] = '1'",
    "os.listdir ": "import pathlib\nlist(pathlib.Path('.').iterdir())",
    "logging of the root": "import logging\nlogging.basicConfig()",
    "logging of turnloom": "import logging\nlogging.getLogger('turnloom').setLevel(10)",
    "thread ": (
        "import threading\nstop = threading.Event()\n"
        "threading.Thread(target=stop.wait, daemon=True).start()"
    ),
    "socket.": "import socket\nsocket.socket().close()",
    "sqlite3.connect": "import sqlite3\nsqlite3.connect(':memory:').close()",
    "subprocess.Popen": "import subprocess\nsubprocess.run(['true'])",
}


def run(tree: Tree, script: str) -> Any:
    """Run a script in a fresh interpreter that sees the tree's turnloom; give what it prints."""
    outcome = subprocess.run(
        [sys.executable, "-c", dedent(script)],
        cwd=tree.path,
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")}
        | {"PYTHONPATH": "src"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(outcome.stdout)


def test_all_is_exactly_the_public_names() -> None:
    names = run(Tree(ROOT), NAMES)
    assert len(names["all"]) == len(set(names["all"]))
    assert sorted(names["all"]) == sorted(names["public"])
    assert not names["missing"]
    assert not names["unknown"]


def test_importing_does_nothing_else() -> None:
    assert run(Tree(ROOT), EFFECTS) == []


def test_a_name_beside_all_is_seen(tree: Tree) -> None:
    tree.write("src/turnloom/__init__.py", "Loom = 1\nextra = 2\n__all__ = ['Loom', 'gone']\n")
    names = run(tree, NAMES)
    assert names["public"] == ["Loom", "extra"]
    assert names["missing"] == ["gone"]


@pytest.mark.parametrize("effect", PLANTS)
def test_an_effect_of_importing_is_seen(tree: Tree, effect: str) -> None:
    tree.write("src/turnloom/__init__.py", f"import pydantic\nLoom = 1\n{PLANTS[effect]}\n")
    assert any(seen.startswith(effect) for seen in run(tree, EFFECTS)), run(tree, EFFECTS)


def test_importing_a_quiet_package_is_seen_as_quiet(tree: Tree) -> None:
    tree.write(
        "src/turnloom/__init__.py",
        "import anyio, msgspec, pydantic\nfrom turnloom.log import Loom\n",
    )
    tree.write("src/turnloom/log/__init__.py", "class Loom: ...\n")
    assert run(tree, EFFECTS) == []
