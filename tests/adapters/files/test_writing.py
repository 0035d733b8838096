"""Documents written back: the same value, the former file kept, all or nothing."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnloom.adapters.files import back_up, dump, parse, read_part, replace_text
from turnloom.errors import UsageError

AWKWARD = [
    *("yes", "null", "~", "", "1", ".5e3", "1e5", "0x1F", "0o7", "<<", "=", "2020-01-01", "..."),
    *("- a", "a: b", "a #b", "#c\nd", "---\nx", "|", "? x", "'", '"', "%a\nb", "*a", "&a", "!a"),
    *("\n", "a\n", "a\n\n", "\n\n", " \n a", "  x\ny", "x \ny\t\n", "x\r\ny", "\ttab\nx", "ü 😀"),
    *("\x85", "a\u2028b", "\ufeff", "\x1f\n", "x" * 200),
]
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
words = texts | st.sampled_from(AWKWARD)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
values: st.SearchStrategy[Any] = st.recursive(
    scalars.filter(lambda each: each not in (float("inf"), -float("inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.dictionaries(words, values))
@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_what_is_written_is_read_again(file: str, value: dict[str, Any]) -> None:
    document, problems = parse(file, dump(file, value))
    assert document and not problems
    assert document.value == value and list(document.value) == list(value)


def test_files_look_as_people_write_them() -> None:
    same = [1, {"a": True}]
    value = {"name": "Zoë", "lines": "one\ntwo", "list": same, "again": same, "word": "true"}
    assert dump("a.json", {"name": "Zoë"}) == '{\n  "name": "Zoë"\n}\n'
    assert dump("a.yml", value) == (
        "name: Zoë\nlines: |-\n  one\n  two\nlist:\n  - 1\n  - a: true\n"
        'again:\n  - 1\n  - a: true\nword: "true"\n'
    )


def test_the_former_file_is_kept_under_a_free_name(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("0", "utf-8")
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to("a.json")
    kept: list[str] = []
    for number, path in enumerate((file, file, link), 1):
        kept.append(back_up(str(path)))
        replace_text(str(path), f"{number}\n")
    assert [os.path.basename(each) for each in kept] == [
        "a.json.bak",
        "a.json.bak.1",
        "a.json.bak.2",
    ]
    assert [Path(each).read_text("utf-8").strip() for each in kept] == ["0", "1", "2"]
    assert file.read_text("utf-8") == "3\n" and link.is_symlink()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}
    assert len(list(tmp_path.iterdir())) == 5


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OSError):
        replace_text(str(tmp_path / "a.json"), "{}")
    with pytest.raises(OSError):
        replace_text(str(tmp_path / "none.json"), "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_part_is_read_from_its_folder_or_from_its_file(tmp_path: Path) -> None:
    def refusal(path: Path) -> str:
        with pytest.raises(UsageError) as raised:
            read_part(str(path), "agents")
        return str(raised.value)

    assert "nowhere" in refusal(tmp_path / "nowhere")
    assert "agents" in refusal(tmp_path)
    file = tmp_path / "agents.yml"
    file.write_text("a: 1\na: 2", "utf-8")
    for path in (tmp_path, file):
        document, (problem,) = read_part(str(path), "agents")
        assert document and document.file == problem.file == str(file) and problem.code == "W003"
    (tmp_path / "agents.json").symlink_to(tmp_path.parent / "elsewhere.json")
    assert "agents.json" in refusal(tmp_path)
    file.unlink()
    document, (problem,) = read_part(str(tmp_path), "agents")
    assert document is None and problem.code == "W009"
    (tmp_path / "agents.txt").write_text("a: 1", "utf-8")
    assert "agents.txt" in refusal(tmp_path / "agents.txt")
