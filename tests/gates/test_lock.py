"""The lock answers everything that pyproject asks for, with hashes and without a host."""

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gates.conftest import CONFIG, ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.!+]+)", LOCK, re.MULTILINE))
CORE = {
    *("anyio", "google-re2", "jsonschema", "msgspec", "pydantic", "rich", "ruamel.yaml", "typer"),
    "typing-extensions",
}


def asked() -> list[Requirement]:
    project, build = CONFIG["project"], CONFIG["build-system"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = [*project["dependencies"], *extras, *CONFIG["dependency-groups"]["dev"]]
    lines += build["requires"]
    return [Requirement(line) for line in lines]


def test_every_requirement_is_pinned_within_its_bounds() -> None:
    for requirement in asked():
        pin = PINS.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement.name!r} is not in the lock. Run `make lock`."
        assert requirement.specifier.contains(pin), f"{requirement} is not {pin}. Run `make lock`."


def test_every_pin_has_hashes() -> None:
    blocks = re.split(r"^(?=[\w.-]+(?:\[[\w,-]+\])?==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(PINS)
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_core_stays_small() -> None:
    assert {Requirement(line).name for line in CONFIG["project"]["dependencies"]} == CORE
