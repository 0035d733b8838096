"""`turnloom migrate`: files of earlier shapes, rewritten where they are."""

import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.conftest import CHAT, INTERVIEW, PROGRAM, Call
from tests.support.folders import contents, write_folder
from turnloom.adapters.files import dump, read_sources, replace_files, undo_replacement
from turnloom.errors import UsageError

BEFORE = {
    "schema_overview": {"enabled": True},
    "derived_variables": [
        {
            "name": "done",
            "description": "Wahr, sobald der Dichter genügt: ✓",
            "default": False,
            "triggers": [{"type": "agent_text", "agent": "Poet", "match": {"equals": "NEXT"}}],
        }
    ],
}
# A child that measures coverage would write its own file.
ALONE = "unset COVERAGE_PROCESS_CONFIG;"

YAML = """\
derived_variables:  # what agents say
  - name: done
    default: false
    triggers: [{type: agent_text, agent: Poet, match: {equals: "NEXT"}}]
"""


def write(tmp_path: Path, file: str, text: str) -> Path:
    kept = {name: said for name, said in CHAT.items() if not name.startswith("context")}
    agents = {
        "agents.yaml": "{Poet: {system_message: Rhyme.}, Critic: {system_message: Judge.}}",
    }
    return Path(write_folder(tmp_path, kept | agents | {file: text}, "Chat")) / file


def test_a_json_file_is_rewritten_and_passes_its_check(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "context_variables.json", json.dumps(BEFORE))
    before = file.read_bytes()
    dry = turnloom("migrate", "Chat", "--dry-run")
    assert file.read_bytes() == before
    done = turnloom("migrate", "Chat")
    lines = done.out.splitlines()
    assert lines[0] == "Chat/context_variables.json" and not done.err
    for said in (
        *("  schema_overview: ", "  done (derived_variables[0]): "),
        *("    assumed: ", "    lost: ", "Entries: 1 rewritten, 0 unchanged, 1 lost."),
    ):
        assert any(line.startswith(said) for line in lines), done.out
    assert "'Chat/context_variables.json.bak'" in lines[-1]
    assert lines[:-1] == dry.out.splitlines()[:-1]
    assert (file.parent / "context_variables.json.bak").read_bytes() == before
    text = file.read_text("utf-8")
    assert text.startswith('{\n  "context_variables": {\n') and "genügt: ✓" in text
    assert not turnloom("check", "Chat").out
    again = turnloom("migrate", str(file))
    assert "done" in again.out
    assert file.read_text("utf-8") == text
    assert len(list(file.parent.glob("*.bak*"))) == 1


def test_a_yaml_file_stays_yaml_and_no_copy_is_overwritten(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "context_variables.yaml", YAML)
    (file.parent / "context_variables.yaml.bak").write_text("mine", "utf-8")
    done = turnloom("migrate", "Chat/context_variables.yaml")
    assert "'Chat/context_variables.yaml.bak.1'" in done.out
    assert (file.parent / "context_variables.yaml.bak").read_text("utf-8") == "mine"
    assert (file.parent / "context_variables.yaml.bak.1").read_text("utf-8") == YAML
    assert file.read_text("utf-8").startswith("context_variables:\n  definitions:\n    done:\n")
    assert not turnloom("check", "Chat").out


@pytest.mark.parametrize("file", ["context_variables.yaml", "context_variables.json"])
def test_a_file_keeps_its_line_ends(file: str, turnloom: Call, tmp_path: Path) -> None:
    described = {**BEFORE["derived_variables"][0], "description": "Two\nlines: here"}
    computed = {"name": "lines", "type": "integer", "source": {"type": "computed"}, "default": 0}
    value = {"derived_variables": [described, computed]}
    text = json.dumps(value, indent=1) if file.endswith(".json") else dump(file, value)
    folder = write(tmp_path, file, "").parent
    code = folder / "derivations.py"
    (folder / file).write_bytes(text.replace("\n", "\r\n").encode())
    code.write_bytes(b"from turnloom import derivation\r\n")
    before = contents(folder)
    turnloom("migrate", "Chat")
    for each in (folder / file, code):
        written = each.read_bytes()
        assert written.count(b"\n") == written.count(b"\r\n") > 5
    document = read_sources(str(folder)).documents["context_variables"]
    assert document.value["definitions"]["done"]["description"] == "Two\nlines: here"
    assert not turnloom("check", "Chat").err
    turnloom("migrate", "Chat", "--undo")
    assert contents(folder) == before


def test_a_full_disk_leaves_everything_as_it_was(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "context_variables.yaml", YAML)
    listed = sorted(file.parent.iterdir())
    done = turnloom(
        shell=f"{ALONE} ulimit -f 0 && exec {shlex.quote(PROGRAM)} migrate Chat", code=1
    )
    assert "context_variables.yaml" in done.err
    assert file.read_text("utf-8") == YAML and sorted(file.parent.iterdir()) == listed


HANDOFFS = "handoffs: [{from: Poet, to: Critic}, {from: Critic, to: terminate}]"
COMPUTED = YAML + "  - {name: lines, type: integer, source: {type: computed}, default: 0}\n"


@pytest.mark.parametrize("written", range(4))
def test_a_migration_that_was_killed_can_be_undone(
    written: int, turnloom: Call, tmp_path: Path
) -> None:
    folder = write(tmp_path, "context_variables.yaml", COMPUTED).parent
    (folder / "handoffs.yaml").unlink()
    (folder / "data").mkdir()
    (folder / "data" / "rules.yaml").write_text(HANDOFFS, "utf-8")
    (folder / "handoffs.yaml").symlink_to("data/rules.yaml")
    before = contents(folder)
    turnloom("migrate", "Chat")
    record = json.loads((folder / ".migration.json").read_text("utf-8"))
    assert record["finished"] and len(record["digests"]) == 4
    for file in list(record["digests"])[written:]:  # these were not written when it was killed
        if file in record["backups"]:
            former = (folder / record["backups"][file]).read_bytes()
            (folder / file).write_bytes(former)
        else:
            (folder / file).unlink()
    (folder / ".migration.json").write_text(json.dumps({**record, "finished": False}), "utf-8")
    assert "--undo" in turnloom("migrate", "Chat", code=2).err
    turnloom("migrate", "Chat", "--undo")
    assert contents(folder) == before and (folder / "handoffs.yaml").is_symlink()
    turnloom("migrate", "Chat")
    assert "def derive_lines" in (folder / "derivations.py").read_text("utf-8")


def test_a_migration_that_was_killed_at_once_replaced_nothing(
    turnloom: Call, tmp_path: Path
) -> None:
    folder = write(tmp_path, "context_variables.yaml", YAML).parent
    before = contents(folder)
    (folder / ".migration.json").write_text("", "utf-8")
    assert "under way" in turnloom("migrate", "Chat", code=2).err
    turnloom("migrate", "Chat", "--undo")
    assert contents(folder) == before


def test_migrations_at_once_lose_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path, "context_variables.yaml", YAML).parent
    before = contents(folder)

    def attempt(number: int) -> bool:
        try:
            replace_files(str(folder), {"context_variables.yaml": "{}", "new.py": "x"}, "report")
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = [*pool.map(attempt, range(16))]
    assert any(done)
    assert len(list(folder.glob("*.bak*"))) >= done.count(True)
    for _ in range(done.count(True)):
        undo_replacement(str(folder))
    assert contents(folder) == before


def test_what_cannot_be_read_is_left_alone(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "context_variables.yaml", "variables: []\nvariables: []\n")
    done = turnloom("migrate", "Chat", code=2)
    assert "context_variables.yaml:2: W003" in done.err
    assert file.read_text("utf-8").count("variables") == 2
    assert "nowhere" in turnloom("migrate", "nowhere", code=2).err
    turnloom("migrate", INTERVIEW)
    assert not list(Path(INTERVIEW).glob("*.bak"))


def test_the_file_of_another_part_is_left_alone(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "agents.yaml", "agents: [{name: A}]\n")
    assert "Migrate its folder: 'Chat'" in turnloom("migrate", "Chat/agents.yaml", code=2).err
    assert file.read_text("utf-8") == "agents: [{name: A}]\n"


def test_a_dry_run_undoes_nothing(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "context_variables.yaml", YAML)
    turnloom("migrate", "Chat")
    migrated = file.read_text("utf-8")
    assert "--dry-run" in turnloom("migrate", "Chat", "--undo", "--dry-run", code=2).err
    assert file.read_text("utf-8") == migrated != YAML


def test_code_in_another_encoding_is_left_alone(turnloom: Call, tmp_path: Path) -> None:
    file = write(tmp_path, "context_variables.yaml", YAML)
    (tmp_path / "Chat" / "derivations.py").write_bytes(b"# caf\xe9\n")
    assert "'derivations.py' is not UTF-8" in turnloom("migrate", "Chat", code=2).err
    assert file.read_text("utf-8") == YAML
