"""What the program says of itself, to people and to their shells."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import Call, surroundings
from tests.support.warm import Warm

# As an interactive Bash asks for the words that may stand at the end of a line.
COMPLETED = """
eval "$(turnloom completion bash)"
COMP_WORDS=({line}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_turnloom_completion turnloom
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("columns", [80, 120])
def test_help_breaks_lines_at_the_edge_only(turnloom: Call, columns: int) -> None:
    for words in ((), ("board",)):
        lines = [
            each.strip("│\n")
            for each in turnloom(*words, "-h", COLUMNS=f"{columns}").out.splitlines()
        ]
        for line, after in pairwise(lines):
            if after.startswith("    ") and after.strip():
                room = len(line) - len(line.rstrip())
                assert len(after.split()[0]) >= room - 2, (line, after)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("turnloom exp", "explain"),
        ("turnloom explain --tu", "--turn"),
        ("turnloom board ''", "list query publish"),
        ("turnloom completion ''", "bash zsh fish"),
        ("turnloom run Ch", ""),
    ],
)
def test_bash_completes_commands_and_options(
    warm: Warm, tmp_path: Path, line: str, words: str
) -> None:
    done = warm.shell(COMPLETED.format(line=line), tmp_path, surroundings({}))
    assert (done.code, done.out.strip()) == (0, words)


def test_other_shells_have_a_script_of_their_own(turnloom: Call) -> None:
    assert turnloom("completion", "zsh").out.startswith("#compdef turnloom\n")
    assert turnloom("completion", "fish").out.startswith("complete --command turnloom ")
    assert "fish" in turnloom("completion", "tcsh", code=2).err
