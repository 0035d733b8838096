"""One planted violation for each rule of the linter, all seen in one run."""

from collections.abc import Callable

import pytest

from tests.gates.conftest import CONFIG, Outcome, Tree

BANNED = {
    "datetime.datetime.now": "import datetime\n\nX = datetime.datetime.now(datetime.UTC)\n",
    "datetime.datetime.utcnow": "from datetime import datetime\n\nX = datetime.utcnow()\n",
    "datetime.date.today": "from datetime import date\n\nX = date.today()\n",
    "time.time": "import time\n\nX = time.time()\n",
    "time.monotonic": "from time import monotonic\n\nX = monotonic()\n",
    "time.perf_counter": "import time\n\nX = time.perf_counter()\n",
    "uuid.uuid1": "import uuid\n\nX = uuid.uuid1()\n",
    "uuid.uuid4": "from uuid import uuid4\n\nX = uuid4()\n",
    "random": "import random\n\nX = random.choice([1])\n",
    "secrets": "import secrets\n\nX = secrets.token_hex()\n",
    "os.urandom": "import os\n\nX = os.urandom(4)\n",
    "unittest.mock": "from unittest.mock import patch\n\nX = patch\n",
}
TRY = "try:\n    X = 1\nexcept {}:\n    {}\n"
PLANTS = {
    "E501": f"X = '{'x' * 100}'\n",
    "F401": "import json\n",
    "I001": "import json\nimport ast\n\nX = (ast, json)\n",
    "UP006": "import typing\n\nX: typing.List[int] = []\n",
    "B006": "def give(items=[]):\n    '''Give.'''\n    return items\n",
    "ASYNC210": (
        "import urllib.request\n\n\nasync def give():\n    '''Give.'''\n"
        "    return urllib.request.urlopen('http://localhost')\n"
    ),
    "ASYNC251": ("import time\n\n\nasync def give():\n    '''Give.'''\n    time.sleep(1)\n"),
    "BLE001": TRY.format("Exception", "X = 2"),
    "C901": "def give(x):\n    '''Give.'''\n"
    + "".join(f"    if x == {n}:\n        x += 1\n" for n in range(8)),
    "DTZ001": "import datetime\n\nX = datetime.datetime(2020, 1, 1)\n",
    "DTZ005": BANNED["datetime.datetime.now"].replace("datetime.UTC", ""),
    "ERA001": "# X = give(1)\nX = 1\n",
    "PGH003": "X: int = 'x'  # type: ignore\n",
    "PGH004": "import json  # noqa\n",
    "PLC0415": "def give():\n    '''Give.'''\n    import json\n\n    return json\n",
    "PLR0913": "def give(a, b, c, d, e, f, g, h):\n    '''Give.'''\n",
    "RUF006": (
        "import asyncio\n\n\nasync def give(x):\n    '''Give.'''\n    asyncio.create_task(x)\n"
    ),
    "RUF100": "X = 1  # noqa: E501\n",
    "S110": TRY.format("Exception", "pass"),
    "T201": "print('x')\n",
    "T203": "from pprint import pprint\n\npprint('x')\n",
    "D100": None,
    "D101": "class Thing:\n    x = 1\n",
    "D102": "class Thing:\n    '''A thing.'''\n\n    def give(self):\n        return 1\n",
    "D103": "def give():\n    return 1\n",
    "D104": None,
    "D106": "class Thing:\n    '''A thing.'''\n\n    class Part:\n        x = 1\n",
}
ALLOWED = {
    "src/turnloom/adapters/system/clock.py": BANNED["time.time"],
    "bench/speed.py": BANNED["time.perf_counter"] + "print(X)\n",
    "tests/test_nothing.py": "def test_nothing():\n    print('x')\n",
    "src/turnloom/kernel.py": (
        "class Thing:\n    '''A thing.'''\n\n    def __init__(self):\n        self.x = 1\n"
    ),
}


def slug(name: str) -> str:
    return name.replace(".", "_").lower()


@pytest.fixture(scope="module")
def outcome(new_tree: Callable[[], Tree]) -> Outcome:
    tree = new_tree()
    for rule, text in PLANTS.items():
        if text is not None:
            tree.write(f"src/turnloom/log/{slug(rule)}.py", f'"""A module."""\n\n{text}')
    for name, text in BANNED.items():
        tree.write(f"src/turnloom/log/banned_{slug(name)}.py", f'"""A module."""\n\n{text}')
    for path, text in ALLOWED.items():
        tree.write(path, f'"""A module."""\n\n{text}')
    tree.write("src/turnloom/log/d100.py", "X = 1\n")
    tree.write("src/turnloom/log/d104/__init__.py", "X = 1\n")
    return tree.gate("lint")


@pytest.mark.parametrize("rule", PLANTS)
def test_a_planted_violation_is_seen(outcome: Outcome, rule: str) -> None:
    place = "d104/__init__" if rule == "D104" else slug(rule)
    hits = [line for line in outcome.words.splitlines() if f"log/{place}.py" in line]
    assert outcome.code != 0
    assert any(f" {rule} " in line for line in hits), hits


@pytest.mark.parametrize("name", BANNED)
def test_a_banned_name_is_seen(outcome: Outcome, name: str) -> None:
    hits = [line for line in outcome.words.splitlines() if f"banned_{slug(name)}.py" in line]
    assert any(" TID251 " in line for line in hits), hits


@pytest.mark.parametrize("path", ALLOWED)
def test_a_rule_rests_in_its_one_place(outcome: Outcome, path: str) -> None:
    assert path not in outcome.words


def test_no_rule_is_ignored_globally() -> None:
    lint = CONFIG["tool"]["ruff"]["lint"]
    assert not {"ignore", "extend-ignore"} & lint.keys()
    assert {rule for rules in lint["per-file-ignores"].values() for rule in rules} == {
        "TID251",
        "T20",
        "D1",
        "PLC0415",
    }


def test_every_selected_family_has_a_plant() -> None:
    planted = (*PLANTS, "TID251")
    for family in CONFIG["tool"]["ruff"]["lint"]["select"]:
        assert any(rule.startswith(family) for rule in planted), family
