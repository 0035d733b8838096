"""What the record does not hold is unknown, and never asked for."""

from pathlib import Path

import pytest

from tests.support.folders import as_json, write_folder
from turnloom import Answer, Backtest, Loom, Task, ToolCall, UnknownRun, UsageError

TALK = {
    "orchestrator.yaml": "{workflow_name: Talk, initial_agent: A, max_turns: 3}",
    "agents.yaml": "A: {system_message: First.}\nB: {system_message: Second.}",
    "context_variables.yaml": """
        definitions:
          key: {type: string, secret: true, source: {type: environment, env_var: KEY}}
          ready: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_text, agent: A, match: {contains: GO}}]}}
          seen: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: function, function: see}]}}
        agents: {B: {variables: [ready, key]}}
        """,
    "handoffs.yaml": """
        - {source_agent: A, target_agent: B, handoff_type: condition,
           condition: '${ready} == True'}
        - {source_agent: B, target_agent: terminate, handoff_type: after_work}
        """,
    "derivations.py": """
        from turnloom.variables.spec import UNCHANGED, derivation

        @derivation
        def see(event, values):
            return values["ready"] if event.kind == "turn.finished" else UNCHANGED
        """,
}
# The definitions with a new variable from a database.
VIP = """definitions:
          vip: {type: boolean, gate: true, source: {type: database, collection: users,
            search_by: user_id, field: vip, default: false}}
"""


async def engine(task: Task) -> Answer:
    """A hands over by its first tool, if it has one."""
    is_choosing = bool(task.tools) and task.agent == "A"
    return Answer(calls=(ToolCall(task.tools[0].name, {}),)) if is_choosing else Answer("GO.")


def changed(talk: dict[str, str], file: str, before: str, after: str) -> dict[str, str]:
    assert before in talk[file]
    return {**talk, file: talk[file].replace(before, after)}


def with_vip(talk: dict[str, str]) -> dict[str, str]:
    return changed(talk, "context_variables.yaml", "definitions:\n", VIP)


async def backtest(where: Path, talk: dict[str, str], edited: dict[str, str]) -> Backtest:
    """A run of a talk, backtested with an edit."""
    folder = write_folder(where, as_json(talk), "Talk")
    other = write_folder(where, as_json(edited), "Edited")
    async with Loom(store="memory", engine=engine) as app:
        await (await app.start(folder)).finished()
        return await app.history.backtest(other, last=1)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sesame-street")


async def test_a_new_database_variable_is_unknown(tmp_path: Path) -> None:
    (run,) = (await backtest(tmp_path, TALK, with_vip(TALK))).runs
    assert run.differences == {"value": {"undecided": 1}} and run.end is None
    assert run.first is not None and "users.vip by user_id" in run.first.unknown[0]


async def test_a_route_that_needs_an_unknown_is_undecided_and_names_it(tmp_path: Path) -> None:
    rule = ("handoffs.yaml", "${ready} == True", "${vip} == True")
    found = await backtest(tmp_path, TALK, changed(with_vip(TALK), *rule))
    (run,) = found.runs
    assert run.differences["route"] == {"undecided": 1}
    assert run.end is not None and "vip (users.vip by user_id" in run.end.reason
    assert found.rate("undecided").runs == 1 and found.rate("route").runs == 0


async def test_a_term_that_does_not_hold_decides(tmp_path: Path) -> None:
    both = ("handoffs.yaml", "${ready} == True", "${vip} == True AND ${ready} == False")
    (run,) = (await backtest(tmp_path, TALK, changed(with_vip(TALK), *both))).runs
    assert run.differences["route"]["certain"] and "undecided" not in run.differences["route"]


async def test_a_function_that_reads_an_unknown_makes_one(tmp_path: Path) -> None:
    code = ("derivations.py", 'values["ready"]', 'values["vip"]')
    (run,) = (await backtest(tmp_path, TALK, changed(with_vip(TALK), *code))).runs
    assert run.count("value", "undecided") == 2


async def test_a_frame_that_shows_an_unknown_is_undecided(tmp_path: Path) -> None:
    shown = ("context_variables.yaml", "[ready, key]", "[ready, key, vip]")
    (run,) = (await backtest(tmp_path, TALK, changed(with_vip(TALK), *shown))).runs
    assert run.differences["frame"] == {"undecided": 1}
    assert "sesame" not in str(run)


async def test_so_is_one_that_shows_it_in_the_words_of_a_handoff(tmp_path: Path) -> None:
    rule = (
        "handoffs.yaml",
        "condition: '${ready} == True'}",
        "condition_type: string_llm, condition: 'If all is well.'}",
    )
    talk = changed(TALK, *rule)
    edited = changed(with_vip(talk), "handoffs.yaml", "If all is well.", "If ${vip} is well.")
    (run,) = (await backtest(tmp_path, talk, edited)).runs
    assert run.differences["frame"] == {"undecided": 1}


async def test_which_runs(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, as_json(TALK), "Talk")
    async with Loom(store="memory", engine=engine) as app:
        for wrong in ({}, {"runs": ["x"], "last": 1}, {"last": 0}):
            with pytest.raises(UsageError):
                await app.history.backtest(folder, **wrong)
        with pytest.raises(UnknownRun):
            await app.history.backtest(folder, ["nonesuch"])
        assert not (await app.history.backtest(folder, last=3)).runs


@pytest.mark.parametrize(
    ("before", "after", "number"), [("last: 1", "last: 2", 1), ("First.", "The first.", 0)]
)
async def test_a_provider_with_other_settings_is_not_the_recorded_one(
    tmp_path: Path, before: str, after: str, number: int
) -> None:
    context = "context: {provider: transcript, config: {last: 1}}"
    agents = f"A: {{system_message: First.}}\nB: {{system_message: Second., {context}}}"
    talk = {**TALK, "agents.yaml": agents}
    (run,) = (await backtest(tmp_path, talk, changed(talk, "agents.yaml", before, after))).runs
    assert run.count("frame", "undecided") == number
