"""Variables that are read from files of the workflow folder."""

from pathlib import Path

import pytest

from tests.support.checks import problems
from tests.support.folders import write_folder
from turnloom import DefinitionError, Loom, Run
from turnloom.events import ContextLoaded

FILES = {
    "orchestrator.yaml": "{initial_agent: Desk, human_in_the_loop: true, max_turns: 2}",
    "agents.yaml": "Desk: {system_message: Serve.}",
    "context_variables.yaml": """
        definitions:
          hours: {type: object, source: {type: file, path: hours.json, format: json}}
          policy: {type: string, source: {type: file, path: data/policy.md}}
        agents:
          Desk: {variables: [hours, policy]}
        """,
    "handoffs.yaml": "[{source_agent: Desk, target_agent: user, handoff_type: after_work}]",
    "script.yaml": "agents: {Desk: [Hello., Bye.]}",
    "hours.json": '{"monday": [9, 17]}',
    "data/policy.md": "Be kind.\n",
}


async def until_asked(run: Run) -> dict[str, object]:
    """The values of files that a run began with, once it asks the user."""
    found: dict[str, object] = {}
    async for event in run.events():
        if isinstance(event.data, ContextLoaded):
            found = {each.name: each.value for each in event.data.values if each.source == "file"}
        if event.kind == "question.asked":
            break
    return found


async def test_a_run_keeps_the_contents_it_began_with(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path, FILES), f"sqlite:{tmp_path / 'runs.db'}"
    async with Loom(store=store) as app:
        run = await app.start(folder)
        values = await until_asked(run)
    assert values == {"hours": {"monday": [9, 17]}, "policy": "Be kind.\n"}
    for file in ("hours.json", "data/policy.md"):
        (Path(folder) / file).unlink()
    async with Loom(store=store) as app:
        resumed = await app.resume(run.id)
        await resumed.answer(None, "Go on.")
        assert (await resumed.finished()).kind == "run.finished"
        with pytest.raises(DefinitionError) as error:
            await app.start(folder)
    assert [problem.code for problem in error.value.diagnostics] == ["W069", "W069"]


CONTENTS = {
    "a large file": (b"x" * 300_000, "text"),
    "another encoding": (b"\xff\xfe", "text"),
    "no JSON": (b"{", "json"),
    "NaN": (b"NaN", "json"),
    "deep JSON": (b"[" * 100_000, "json"),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_that_cannot_be_a_value(tmp_path: Path, content: str) -> None:
    raw, format = CONTENTS[content]
    source = f"{{type: file, path: x.txt, format: {format}}}"
    shown = "agents: {Desk: {variables: [x]}}"
    variables = f"definitions: {{x: {{type: string, source: {source}}}}}\n{shown}"
    folder = write_folder(tmp_path, {**FILES, "context_variables.yaml": variables})
    (Path(folder) / "x.txt").write_bytes(raw)
    (Path(folder) / "hours.json").unlink()
    found = problems(folder)
    assert [problem.code for problem in found] == ["W069"]


def test_a_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, FILES)
    (tmp_path / "secret").write_text("s3cret")
    (Path(folder) / "data" / "policy.md").unlink()
    (Path(folder) / "data" / "policy.md").symlink_to(tmp_path / "secret")
    assert [problem.code for problem in problems(folder)] == ["W069"]
