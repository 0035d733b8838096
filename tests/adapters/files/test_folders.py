import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnloom.adapters.files import read_folder, restore_folder, texts
from turnloom.kernel.digests import fingerprint

ORCHESTRATOR = "workflow_name: W\n"


def folder(root: Path, files: Mapping[str, str | bytes]) -> Path:
    path = root / "W"
    path.mkdir()
    for name, content in ({"orchestrator.yaml": ORCHESTRATOR} | dict(files)).items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def problems(path: Path) -> list[tuple[str, int, str]]:
    found = read_folder(path)[1]
    for problem in found:
        assert problem.message and problem.remedy
    return [(problem.file, problem.line, problem.code) for problem in found]


def test_a_folder_holds_documents_by_part_and_digests_of_its_code(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        {
            "agents.json": '{"agents": []}',
            "tools.yml": "tools: []",
            "README.md": "x",
            "notes.txt": "x",
            ".hidden.yaml": "{",
            "setup.py": "a = 1\n",
            "tools/greet.py": "b = 'é'\n",
            "tools/._greet.py": b"\x00\xff",
            "tools/prompt.yaml": "not a part: [",
            "tools/deep/more.py": "c = 1\n",
            "tools/no-package/x.py": "d = 1\n",
            "node_modules/x/y.py": "e = 1\n",
        },
    )
    found, all_problems = read_folder(path)
    assert all_problems == []
    assert (found.name, found.root) == ("W", str(path))
    assert {part: document.file for part, document in found.documents.items()} == {
        "agents": "W/agents.json",
        "orchestrator": "W/orchestrator.yaml",
        "tools": "W/tools.yml",
    }
    assert found.documents["orchestrator"].value == {"workflow_name": "W"}
    assert found.code == {
        "setup.py": fingerprint("a = 1\n"),
        "tools/deep/more.py": fingerprint("c = 1\n"),
        "tools/greet.py": fingerprint("b = 'é'\n"),
    }


def test_texts_restore_the_same_folder_without_the_disk(tmp_path: Path) -> None:
    path = folder(tmp_path, {"agents.json": "\ufeff{}", "a.py": "", "handoffs.yml": "a: 1"})
    found, _ = read_folder(path)
    kept = texts(found)
    assert kept == {"agents.json": "{}", "orchestrator.yaml": ORCHESTRATOR, "handoffs.yml": "a: 1"}
    for file in path.iterdir():
        file.unlink()
    assert restore_folder(found.name, found.root, kept, found.code) == (found, [])


def test_restored_texts_have_the_same_problems() -> None:
    stored = {"agents.json": "{", "agents.yaml": "{}", "agent.yaml": "", "hooks.yml": "a: 1\na: 2"}
    found, all_problems = restore_folder("W", "/nowhere", stored, {})
    assert [(problem.file, problem.code) for problem in all_problems] == [
        ("W/agent.yaml", "W007"),
        ("W/agents.json", "W002"),
        ("W/agents.yaml", "W004"),
        ("W/hooks.yml", "W003"),
    ]
    assert found.documents["agents"].file == "W/agents.yaml"


def test_the_name_of_a_relative_folder_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder(tmp_path, {})
    monkeypatch.chdir(path)
    assert read_folder(".")[0].name == "W"
    assert read_folder("../W/")[0].root == str(path)


@pytest.mark.parametrize("name", ["missing", "file", "a\0b"])
def test_what_is_no_directory_is_no_workflow_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    found, (problem,) = read_folder(str(tmp_path / name))
    assert problem.code == "W000"
    assert str(tmp_path) not in str(problem)
    assert (found.documents, found.code) == ({}, {})


def test_a_directory_without_orchestrator_and_agents_is_no_workflow_folder(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("")
    (tmp_path / "tools.yaml").write_text("a: [")
    found = read_folder(tmp_path)[1]
    assert [problem.code for problem in found] == ["W000", "W007", "W002"]
    assert "'agents.yaml'" in found[1].remedy


def test_an_unreadable_agents_file_is_still_one(tmp_path: Path) -> None:
    (tmp_path / "agents.json").write_bytes(b"\xff")
    assert [problem.code for problem in read_folder(tmp_path)[1]] == ["W001"]


def test_two_files_for_one_part_are_refused_and_all_of_them_are_checked(tmp_path: Path) -> None:
    path = folder(tmp_path, {"orchestrator.json": "{}", "orchestrator.yml": "a: ["})
    assert problems(path) == [
        ("W/orchestrator.yaml", 1, "W004"),
        ("W/orchestrator.yml", 1, "W002"),
        ("W/orchestrator.yml", 1, "W004"),
    ]
    found, all_problems = read_folder(path)
    for name in ("'orchestrator.json'", "'orchestrator.yml'"):
        assert name in all_problems[-1].message
    assert found.documents["orchestrator"].file == "W/orchestrator.json"


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("hadnoffs.yaml", "'handoffs.yaml'"),
        ("Agents.json", "'agents.json'"),
        ("agents.YAML", "'agents.yaml'"),
        ("package.json", ""),
    ],
)
def test_a_declarative_file_that_is_no_part_is_reported(
    tmp_path: Path, file: str, remedy: str
) -> None:
    found = read_folder(folder(tmp_path, {file: "{}"}))[1]
    assert [(problem.file, problem.code) for problem in found] == [(f"W/{file}", "W007")]
    assert remedy in found[0].remedy
    assert found[0].severity == ("error" if remedy else "warning")


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        (b"a: 1\nb: \xff\n", 2, "0xff"),
        (b"\xef\xbb\xbfa: 1\n\xc3", 2, "0xc3"),
        ("a: 1".encode("utf-16"), 1, "UTF-16"),
        ("a: 1".encode("utf-16-be"), 1, "NUL"),
        ("\ufeffa: 1".encode("utf-16-be"), 1, "UTF-16"),
        ("\ufeffa: 1".encode("utf-32-be"), 1, "UTF-32"),
        (b"a: 1\n\0", 2, "NUL"),
    ],
)
def test_bytes_that_are_no_utf_8_text_cannot_be_read(
    tmp_path: Path, raw: bytes, line: int, words: str
) -> None:
    (problem,) = read_folder(folder(tmp_path, {"agents.yaml": raw}))[1]
    assert (problem.file, problem.line, problem.code) == ("W/agents.yaml", line, "W001")
    assert words in problem.message
    assert "UTF-8" in problem.remedy


def test_code_is_checked_for_its_encoding_too(tmp_path: Path) -> None:
    path = folder(tmp_path, {"a.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "b.py": ""})
    assert problems(path) == [("W/a.py", 2, "W001")]
    assert list(read_folder(path)[0].code) == ["b.py"]


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {"agents.json": b" " * (4 * 1024 * 1024 + 1)})
    assert problems(path) == [("W/agents.json", 1, "W005")]


def test_a_directory_or_a_pipe_is_no_declaration(tmp_path: Path) -> None:
    path = folder(tmp_path, {"agents.json/x": ""})
    os.mkfifo(path / "hooks.yaml")
    assert problems(path) == [("W/agents.json", 1, "W001"), ("W/hooks.yaml", 1, "W001")]


def test_a_file_name_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {})
    for name in (b"\xff.py", b"\xfe.yaml"):
        Path(os.fsdecode(os.fsencode(path) + b"/" + name)).touch()
    assert problems(path) == [("W", 1, "W001")] * 2
    found, all_problems = read_folder(path)
    assert found.code == {}
    assert "".join(map(str, all_problems)).isascii()


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Let root be nobody for a while: root may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_files_without_permission_cannot_be_read() -> None:
    with as_somebody_else(), TemporaryDirectory() as where:
        path = folder(Path(where), {"agents.json": "{}", "tools/a.py": ""})
        (path / "agents.json").chmod(0)
        (path / "tools").chmod(0)
        assert problems(path) == [("W/agents.json", 1, "W001"), ("W/tools", 1, "W001")]
        (path / "tools").chmod(0o700)


@pytest.mark.parametrize("text", ["", "{}", '{"version": 3, "journeys": [], "x": {}}'])
def test_an_empty_pack_is_accepted(tmp_path: Path, text: str) -> None:
    files = {"_pack/workflow_graph.json": text, "_pack/README.md": "x"}
    assert problems(folder(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"version": 3,\n"journeys": [{"id": "x"}]}', 2),
        ('{"version": 3,\n"journeys": {\n"a": null}}', 2),
        ("[\n1, 2]", 2),
    ],
)
def test_a_pack_that_declares_something_is_a_warning(tmp_path: Path, text: str, line: int) -> None:
    path = folder(tmp_path, {"_pack/workflow_graph.json": text})
    assert problems(path) == [("W/_pack/workflow_graph.json", line, "W008")]


def test_a_broken_pack_is_reported(tmp_path: Path) -> None:
    path = folder(tmp_path, {"_pack/workflow_graph.json": "{"})
    assert problems(path) == [("W/_pack/workflow_graph.json", 1, "W002")]


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.py").write_text("")
    (outside / "x.json").write_text("{}")
    path = folder(tmp_path, {})
    (path / "agents.json").symlink_to(outside / "x.json")
    (path / "hooks.json").symlink_to(outside / "missing.json")
    (path / "a.py").symlink_to(outside / "x.py")
    (path / "tools").symlink_to(outside)
    (path / "_pack").symlink_to(outside)
    expected = ["_pack", "a.py", "agents.json", "hooks.json", "tools"]
    assert problems(path) == [(f"W/{file}", 1, "W009") for file in expected]
    assert read_folder(path)[0].code == {}


def test_a_folder_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    path = folder(tmp_path, {})
    (tmp_path / "W2").mkdir()
    (tmp_path / "W2" / "agents.json").write_text("{}")
    (path / "agents.json").symlink_to("../W2/agents.json")
    assert problems(path) == [("W/agents.json", 1, "W009")]


def test_links_inside_the_folder_and_to_the_folder_are_followed(tmp_path: Path) -> None:
    path = folder(tmp_path, {"shared/agents.json": '{"agents": []}'})
    (path / "agents.json").symlink_to("shared/agents.json")
    (tmp_path / "Linked").symlink_to(path)
    found, all_problems = read_folder(tmp_path / "Linked")
    assert (found.name, all_problems) == ("Linked", [])
    assert found.documents["agents"].file == "Linked/agents.json"


def test_a_link_that_leads_nowhere_cannot_be_read(tmp_path: Path) -> None:
    path = folder(tmp_path, {})
    (path / "agents.json").symlink_to("agents.json")
    (path / "hooks.json").symlink_to("missing.json")
    assert problems(path) == [("W/agents.json", 1, "W001"), ("W/hooks.json", 1, "W001")]


names = st.sampled_from(
    ["agents.json", "agents.yaml", "tools.yml", "x.json", "a.py", "tools/b.py", "_pack/g.json"]
)
contents = st.binary(max_size=60) | st.sampled_from([b"{}", b"a: 1", b"\xff\xfe", b"{", b"[1]"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, contents, max_size=5))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    path = folder(tmp_path_factory.mktemp("fuzz"), files)
    found, all_problems = read_folder(path)
    assert all(problem.file.startswith("W") for problem in all_problems)
    kept = {"orchestrator.yaml": ORCHESTRATOR} | texts(found)
    restored, _ = restore_folder(found.name, found.root, kept, found.code)
    assert restored == found
