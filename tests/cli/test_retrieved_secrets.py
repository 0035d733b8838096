"""A secret that turns up in a retrieved passage: the engine is given it, and nobody is told it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.support.folders import write_folder
from tests.support.tables import content_of
from tests.support.warm import Done

SECRET = 'hunter2-"ü"\\hunter3'
FORMS = (SECRET, SECRET.replace("\\", "\\\\").replace('"', '\\"'), repr(SECRET)[1:-1], "hunter")
MARK = "⟨secret:door⟩"

FILES = {
    "orchestrator.yaml": (
        "initial_message: Well?\norchestration_pattern: RoundRobinPattern\nmax_turns: 2"
    ),
    "agents.yaml": """
        Porter:
          engine: {type: functions, file: porter.py, function: open_door}
          context:
            sources:
            - retrieval: {collection: doors, query: how does the door open, min_relevance: 0.1}
            - retrieval: {collection: doors, query: '{door}', min_relevance: 0}
            - provider: notes
            budget: {max_tokens: 60}
        """,
    "context_variables.yaml": """
        definitions:
          door: {type: string, secret: true, source: {type: environment, env_var: DOOR}}
        agents:
          Porter: {variables: [door]}
        """,
    "providers.py": """
        from turnloom import ContextSlice, RagCollection

        class Doors(RagCollection):
            name = "doors"

        async def notes(request):
            return ContextSlice([{"said": message.text} for message in request.ctx.run.transcript])
        """,
    "porter.py": """
        from pathlib import Path

        def open_door(task):
            Path(f"prompt{task.turn}.txt").write_text(task.prompt, "utf-8")
            if task.turn == 2:
                raise RuntimeError(f"It stays shut: {task.context.items!r}")
            return f"I read: {task.context.items[0]['content']}"
        """,
}


@pytest.fixture
def played(turnloom: Call, tmp_path: Path) -> Iterator[tuple[Call, Done]]:
    write_folder(tmp_path, FILES, "Gate")
    (tmp_path / "doors").mkdir()
    text = f"The door opens with {SECRET} at night.\n\n"
    (tmp_path / "doors" / "front.txt").write_text(text, "utf-8")
    (tmp_path / "doors" / "rear.txt").write_text(text * 40, "utf-8")
    turnloom("ingest", "doors", "--collection", "doors", "--metadata", f"key={SECRET}")
    yield turnloom, turnloom("run", "Gate", "--json", code=1, DOOR=SECRET)


def kept(folder: Path) -> str:
    """All that the files of runs hold."""
    return content_of(folder / ".turnloom", without="*vectors*").decode("utf-8", "replace")


def test_it_is_in_the_prompt_and_nowhere_else(played: tuple[Call, Done], tmp_path: Path) -> None:
    turnloom, run = played
    for number in (1, 2):
        prompt = (tmp_path / f"prompt{number}.txt").read_text("utf-8")
        assert f"Context:\nThe door opens with {SECRET} at night." in prompt
    assert '{"said":"I read: The door opens with ⟨secret :door⟩ at night."}' in prompt
    said = {"run": run.out + run.err, "files": kept(tmp_path)}
    for words in (
        ("explain", "last"),
        ("explain", "last", "--turn", "1"),
        ("explain", "last", "--turn", "2"),
        ("explain", "last", "--variable", "door"),
        ("runs",),
    ):
        for form in ((), ("--json",)):
            done = turnloom(*words, *form, DOOR=SECRET)
            said[" ".join((*words, *form))] = done.out + done.err
    for what, text in said.items():
        assert not [form for form in FORMS if form in text], what
    assert MARK in said["run"] and MARK in said["files"] and MARK in said["explain last --turn 1"]
    assert "It stays shut" in said["run"]
