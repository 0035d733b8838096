"""The check of flows: every mistake at its line, all of them at once, nothing said of what is
right."""

import re
from pathlib import Path

import pytest

from tests.flow.mistakes import PRELUDE, Mistake, mistakes
from turnloom import DefinitionError, Diagnostic, flow
from turnloom.wiring import ModelEngines, examine_code, flows_in

MISTAKES = mistakes()
SEVERITIES = {
    "W105": "warning",
    "W125": "warning",
    "W128": "info",
    "W132": "warning",
    "W133": "warning",
}

# Given by the check of sources.
OF_SOURCES = {"W021", "W055", "W056", "W058", "W059"}


def examined(folder: Path, text: str) -> list[Diagnostic]:
    """What is said about a program."""
    file = folder / "program.py"
    file.write_text(text, "utf-8")
    return examine_code(str(file), ModelEngines("openai:gpt-5"))


def told(folder: Path, text: str) -> list[tuple[str, int]]:
    """What is said about a program, by code and line."""
    return [(each.code, each.line) for each in examined(folder, text)]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each.code} {each.says}"[:60])
def test_a_mistake_is_told_at_its_line_and_nothing_else_is(
    mistake: Mistake, tmp_path: Path
) -> None:
    found = examined(tmp_path, mistake.text)
    if mistake.code == "nothing":
        assert found == []
    else:
        (problem,) = found
        assert (problem.code, problem.line) == (mistake.code, mistake.line)
        assert problem.file in ("program.py", str(tmp_path / "program.py"))
        said = f"{problem.message} {problem.remedy}"
        assert [value for value in mistake.values if value not in said] == []
        assert problem.severity == SEVERITIES.get(mistake.code, "error")


def test_every_code_that_the_check_can_give_has_a_case() -> None:
    folder = Path(flow.__file__).parent
    texts = [module.read_text("utf-8") for module in folder.rglob("*.py")]
    given = {code for text in texts for code in re.findall(r'"(W\d\d\d)"', text)}
    assert {mistake.code for mistake in MISTAKES} - {"nothing"} == given | OF_SOURCES


MANY = """
flow = (
    Flow("first", State, timeout=0)                                       # W123
    .start_with(load, retry=-1, timeout=-1)                               # W122 W123
    .branch(lambda s: s.kind, {Kind.good: Path(work)})                    # W113
    .fork(
        Path()                                                            # W108
    )
    .finally_(close, on_failure=alert, recover=5)                         # W126
)
other = Flow("other", State).start_with(check)                            # W105
other.then(check)                                                         # W106


def build():
    return Flow("inner", dict).finally_(lambda: None)                     # W101 W116 W121


build()
raise LookupError("no more")                                              # W042
"""


def test_all_mistakes_of_all_flows_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    text = PRELUDE + MANY.replace(".fork(\n", ".fork(  # W107 W109\n")
    expected = [
        (code, number)
        for number, line in enumerate(text.split("\n"), 1)
        for code in re.findall(r"\b(W\d\d\d)", line.partition("#")[2])
    ]
    assert told(tmp_path, text) == expected
    assert len(expected) == 14


def test_a_flow_is_refused_where_it_is_built_with_everything_that_is_wrong(tmp_path: Path) -> None:
    text = PRELUDE + "begun(timeout=-1).then(work, retry=-1).finally_(close)\n"
    scope: dict[str, object] = {}
    with pytest.raises(DefinitionError) as refused:
        exec(compile(text, "built.py", "exec"), scope)
    assert [each.code for each in refused.value.diagnostics] == ["W123", "W122"]
    assert {each.file for each in refused.value.diagnostics} == {"built.py"}


def test_a_file_that_builds_no_flow_is_told(tmp_path: Path) -> None:
    (problem,) = examined(tmp_path, "x = 1\n")
    assert (problem.code, problem.line) == ("W000", 1)
    with pytest.raises(DefinitionError):
        flows_in(str(tmp_path / "nowhere.py"))


def test_what_a_flow_declares_beside_its_steps_is_checked_with_it(tmp_path: Path) -> None:
    text = PRELUDE + "Flow('f', State, variables={'definitions': {'x': 5}}).start_with(load)\n"
    line = text.count("\n")
    assert ("W012", line) in told(tmp_path, text)
    text = PRELUDE + "begun(hooks=[{'event': 'before_chat'}]).finally_(close)\n"
    assert [each[0] for each in told(tmp_path, text)] == ["W126"]
