"""Each import contract, broken once."""

import pytest

from tests.gates.conftest import CONFIG, ROOT, Tree, contract

PLANTS = {
    "a lower concept imports a higher one": (
        "Imports point down the list of concepts",
        {"src/weft/log/logic.py": "import weft.variables\n"},
    ),
    "siblings import each other": (
        "Imports point down the list of concepts",
        {"src/weft/flow/spec.py": "import weft.conversation\n"},
    ),
    "a concept goes round through the public names": (
        "Imports point down the list of concepts",
        {
            "src/weft/__init__.py": "from weft.app import Weft as Weft\n",
            "src/weft/app.py": "class Weft: ...\n",
            "src/weft/log/logic.py": "from weft import Weft\n",
        },
    ),
    "a package has no place": (
        "weft.helpers",
        {"src/weft/helpers.py": "X = 1\n"},
    ),
    "spec imports events": (
        "Imports point down the list of kinds",
        {"src/weft/log/spec.py": "import weft.log.events\n", "src/weft/log/events.py": ""},
    ),
    "logic imports ports": (
        "Imports point down the list of kinds",
        {"src/weft/log/logic.py": "import weft.log.ports\n", "src/weft/log/ports.py": ""},
    ),
    "a module is of no kind": (
        "weft.log.helpers",
        {"src/weft/log/helpers.py": "X = 1\n"},
    ),
    "logic knows the service of another concept": (
        "Pure kinds touch no clock, no chance, no world",
        {"src/weft/variables/logic.py": "import weft.log.service\n", "src/weft/log/service.py": ""},
    ),
    "a pure kind reaches the world through the kernel": (
        "weft.log.spec -> weft.kernel",
        {"src/weft/log/spec.py": "import weft.kernel\n", "src/weft/kernel.py": "import os\n"},
    ),
    "the runtime reads files": (
        "The runtime reaches the world through ports only",
        {"src/weft/runtime/driver.py": "import pathlib\n"},
    ),
    "an adapter knows another": (
        "Adapters do not know each other",
        {
            "src/weft/adapters/sqlite/log.py": "import weft.adapters.memory\n",
            "src/weft/adapters/memory/__init__.py": "",
        },
    ),
    "the app chooses an adapter": (
        "Only wiring chooses adapters",
        {"src/weft/app.py": "import weft.adapters.memory\n", "src/weft/adapters/memory.py": ""},
    ),
    "siblings form a ring": (
        "No cycles are allowed in weft.log.logic",
        {
            "src/weft/log/logic/one.py": "import weft.log.logic.two\n",
            "src/weft/log/logic/two.py": "import weft.log.logic.one\n",
        },
    ),
}
WORLD = ["asyncio", "anyio", "os", "time", "random", "logging", "threading", "socket", "sqlite3"]
VENDORS = {
    "bson": "weft.adapters.mongo",
    "numpy": "weft.adapters.sqlite.vectors",
    "psycopg": "weft.adapters.postgres",
    "psycopg_pool": "weft.adapters.postgres",
    "pymongo": "weft.adapters.mongo",
    "re2": "weft.variables.logic",
    "rich": "weft.cli",
    "ruamel.yaml": "weft.adapters.files",
    "semantic_text_splitter": "weft.adapters.semantic_text_splitter",
    "splintr": "weft.adapters.splintr",
    "sqlite3": "weft.adapters.sqlite",
    "typer": "weft.cli",
    "wordllama": "weft.adapters.wordllama",
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
    for kind in ["spec", "events", "logic"]:
        tree.write(f"src/weft/log/{kind}.py", "".join(f"import {part}\n" for part in WORLD))
    words = tree.gate("imports").words
    for kind in ["spec", "events", "logic"]:
        for part in WORLD:
            assert f"weft.log.{kind} is not allowed to import {part}:" in words


def test_a_vendor_is_closed_outside_its_adapter_and_open_inside(tree: Tree) -> None:
    for vendor, home in VENDORS.items():
        tree.write(
            f"src/{home.replace('.', '/')}/home_{vendor.partition('.')[0]}.py", f"import {vendor}\n"
        )
    assert tree.gate("imports").code == 0
    tree.write("src/weft/runtime/drive.py", "".join(f"import {vendor}\n" for vendor in VENDORS))
    words = tree.gate("imports").words.partition("Vendors stay in their adapter\n---")[2]
    for vendor in VENDORS:
        assert f"weft is not allowed to import {vendor.partition('.')[0]}:" in words


def test_wiring_and_testing_may_name_adapters(tree: Tree) -> None:
    tree.write("src/weft/adapters/memory.py", "")
    tree.write("src/weft/wiring.py", "import weft.adapters.memory\n")
    tree.write("src/weft/testing/suites.py", "import weft.adapters.memory\n")
    assert tree.gate("imports").code == 0


def test_the_contract_of_kinds_names_every_concept_that_exists() -> None:
    names = [
        name.strip(" ()") for layer in contract("concepts")["layers"] for name in layer.split("|")
    ]
    concepts = names[names.index("conversation") : names.index("log") + 1]
    present = {
        f"weft.{name}" for name in concepts if list((ROOT / "src" / "weft" / name).glob("*.py"))
    }
    assert set(contract("kinds")["containers"]) == present


def test_type_checking_imports_count() -> None:
    assert "exclude_type_checking_imports" not in CONFIG["tool"]["importlinter"]
