"""Each import contract, broken once."""

import pytest

from tests.gates.conftest import CONFIG, ROOT, Tree, contract

PLANTS = {
    "a lower concept imports a higher one": (
        "Imports point down the list of concepts",
        {"src/turnloom/log/logic.py": "import turnloom.variables\n"},
    ),
    "siblings import each other": (
        "Imports point down the list of concepts",
        {"src/turnloom/flow/spec.py": "import turnloom.conversation\n"},
    ),
    "a concept goes round through the public names": (
        "Imports point down the list of concepts",
        {
            "src/turnloom/__init__.py": "from turnloom.app import Loom as Loom\n",
            "src/turnloom/app.py": "class Loom: ...\n",
            "src/turnloom/log/logic.py": "from turnloom import Loom\n",
        },
    ),
    "a package has no place": (
        "turnloom.helpers",
        {"src/turnloom/helpers.py": "X = 1\n"},
    ),
    "spec imports events": (
        "Imports point down the list of kinds",
        {
            "src/turnloom/log/spec.py": "import turnloom.log.events\n",
            "src/turnloom/log/events.py": "",
        },
    ),
    "logic imports ports": (
        "Imports point down the list of kinds",
        {
            "src/turnloom/log/logic.py": "import turnloom.log.ports\n",
            "src/turnloom/log/ports.py": "",
        },
    ),
    "a module is of no kind": (
        "turnloom.log.helpers",
        {"src/turnloom/log/helpers.py": "X = 1\n"},
    ),
    "logic knows the service of another concept": (
        "Pure kinds touch no clock, no chance, no world",
        {
            "src/turnloom/variables/logic.py": "import turnloom.log.service\n",
            "src/turnloom/log/service.py": "",
        },
    ),
    "a pure kind reaches the world through the kernel": (
        "turnloom.log.spec -> turnloom.kernel",
        {
            "src/turnloom/log/spec.py": "import turnloom.kernel\n",
            "src/turnloom/kernel.py": "import os\n",
        },
    ),
    "the runtime reads files": (
        "The runtime reaches the world through ports only",
        {"src/turnloom/runtime/driver.py": "import pathlib\n"},
    ),
    "an adapter knows another": (
        "Adapters do not know each other",
        {
            "src/turnloom/adapters/sqlite/log.py": "import turnloom.adapters.memory\n",
            "src/turnloom/adapters/memory/__init__.py": "",
        },
    ),
    "the app chooses an adapter": (
        "Only wiring chooses adapters",
        {
            "src/turnloom/app.py": "import turnloom.adapters.memory\n",
            "src/turnloom/adapters/memory.py": "",
        },
    ),
    "siblings form a ring": (
        "No cycles are allowed in turnloom.log.logic",
        {
            "src/turnloom/log/logic/one.py": "import turnloom.log.logic.two\n",
            "src/turnloom/log/logic/two.py": "import turnloom.log.logic.one\n",
        },
    ),
}
WORLD = ["asyncio", "anyio", "os", "time", "random", "logging", "threading", "socket", "sqlite3"]
VENDORS = {
    "bson": "turnloom.adapters.mongo",
    "numpy": "turnloom.adapters.sqlite.vectors",
    "psycopg": "turnloom.adapters.postgres",
    "psycopg_pool": "turnloom.adapters.procrastinate.database",
    "pymongo": "turnloom.adapters.mongo",
    "re2": "turnloom.variables.logic",
    "rich": "turnloom.cli",
    "ruamel.yaml": "turnloom.adapters.files",
    "semantic_text_splitter": "turnloom.adapters.semantic_text_splitter",
    "splintr": "turnloom.adapters.splintr",
    "sqlite3": "turnloom.adapters.sqlite",
    "typer": "turnloom.cli",
    "wordllama": "turnloom.adapters.wordllama",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_import_is_refused(tree: Tree, plant: str) -> None:
    says, files = PLANTS[plant]
    for name, text in files.items():
        tree.write(name, text)
    outcome = tree.gate("imports")
    assert outcome.code != 0
    assert says in outcome.words.partition("Broken contracts")[2]


def test_each_part_of_the_world_is_closed_to_each_pure_kind(tree: Tree) -> None:
    pure = ["log.spec", "log.events", "log.logic", "runs.form"]
    for each in pure:
        path = f"src/turnloom/{each.replace('.', '/')}.py"
        tree.write(path, "".join(f"import {part}\n" for part in WORLD))
    words = tree.gate("imports").words
    for each in pure:
        for part in WORLD:
            assert f"turnloom.{each} is not allowed to import {part}:" in words


def test_a_vendor_is_closed_outside_its_adapter_and_open_inside(tree: Tree) -> None:
    for vendor, home in VENDORS.items():
        tree.write(
            f"src/{home.replace('.', '/')}/home_{vendor.partition('.')[0]}.py", f"import {vendor}\n"
        )
    assert tree.gate("imports").code == 0
    tree.write("src/turnloom/runtime/drive.py", "".join(f"import {vendor}\n" for vendor in VENDORS))
    words = tree.gate("imports").words.partition("Vendors stay in their adapter\n---")[2]
    for vendor in VENDORS:
        assert f"turnloom is not allowed to import {vendor.partition('.')[0]}:" in words


def test_wiring_and_testing_may_name_adapters(tree: Tree) -> None:
    tree.write("src/turnloom/adapters/memory.py", "")
    tree.write("src/turnloom/wiring.py", "import turnloom.adapters.memory\n")
    tree.write("src/turnloom/testing/suites.py", "import turnloom.adapters.memory\n")
    assert tree.gate("imports").code == 0


def test_the_contract_of_kinds_names_every_concept_that_exists() -> None:
    names = [
        name.strip(" ()") for layer in contract("concepts")["layers"] for name in layer.split("|")
    ]
    concepts = {*names[names.index("access") : names.index("log") + 1]} - {"runs"}
    present = {
        f"turnloom.{name}"
        for name in concepts
        if list((ROOT / "src" / "turnloom" / name).glob("*.py"))
    }
    assert set(contract("kinds")["containers"]) == present


def test_type_checking_imports_count() -> None:
    assert "exclude_type_checking_imports" not in CONFIG["tool"]["importlinter"]
