"""AG2's four message hooks: what an agent is told and reads, and what it says."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import Answer, Event, Loom, Task

CODE = """
    def tell(agent, messages):
        agent.update_system_message(f"{agent.system_message} You have {len(messages)} messages.")
        agent.context_variables["told"] = agent.name

    def last_two(messages):
        return messages[-2:] + [{"name": "clerk", "content": "A note.", "role": "user"}]

    async def mask(content):
        return content.replace("4711", "****")

    def sign(sender, message, recipient, silent):
        return {"content": f"{message} -- {sender}"}

    def stumble(*given):
        raise RuntimeError("no hook")
    """


def hooks(*declared: tuple[str, str, str]) -> str:
    lines = [
        f"- {{hook_type: {kind}, hook_agent: {agent}, filename: code.py, function: {function}}}"
        for kind, agent, function in declared
    ]
    return "hooks:\n" + "\n".join(lines) + "\n"


async def lived(
    where: Path, declared: str, turns: int = 2
) -> tuple[list[Event], dict[str, list[Task]]]:
    """A run of two agents that speak in turn, and what they were asked."""
    files = {
        "orchestrator.yaml": f"""
            orchestration_pattern: RoundRobinPattern
            max_turns: {turns}
            initial_message: My number is 4711.
            """,
        "agents.yaml": "A: {system_message: Ask.}\nB: {system_message: Answer.}\n",
        "hooks.yaml": declared,
        "code.py": CODE,
    }
    tasks: dict[str, list[Task]] = {}

    async def engine(task: Task) -> Answer:
        tasks.setdefault(task.agent, []).append(task)
        return Answer(f"I am {task.agent}.")

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(write_folder(where, files))
        return [event async for event in run.events()], tasks


def told(task: Task) -> list[tuple[str, str]]:
    return [(message.author, message.text) for message in task.transcript]


async def test_an_agent_is_told_what_its_hook_makes_of_its_instructions(tmp_path: Path) -> None:
    events, tasks = await lived(tmp_path, hooks(("update_agent_state", "B", "tell")))
    assert tasks["A"][0].system == "Ask."
    assert tasks["B"][0].system == "Answer. You have 2 messages."
    changed = [(e.data.name, e.data.value, e.actor) for e in events if e.kind == "context.changed"]
    assert changed == [("told", "B", "hook:tell")]


async def test_hooks_change_what_an_agent_reads_and_nothing_else(tmp_path: Path) -> None:
    declared = hooks(
        ("process_last_received_message", "A", "mask"),
        ("process_all_messages_before_reply", "B", "last_two"),
    )
    events, tasks = await lived(tmp_path, declared, turns=4)
    assert told(tasks["A"][0]) == [("workflow", "My number is ****.")]
    assert told(tasks["B"][0])[-1] == ("clerk", "A note.")
    assert told(tasks["B"][1]) == [("B", "I am B."), ("A", "I am A."), ("clerk", "A note.")]
    said = [e.data.text for e in events if e.kind in ("user.text", "agent.text")]
    assert said[0] == "My number is 4711."


async def test_hooks_change_what_an_agent_says(tmp_path: Path) -> None:
    events, _ = await lived(tmp_path, hooks(("process_message_before_send", "all", "sign")))
    said = [(e.data.agent, e.data.text) for e in events if e.kind == "agent.text"]
    assert said == [("A", "I am A. -- A"), ("B", "I am B. -- B")]
    raw = [e.data.raw for e in events if e.kind == "model.answered"]
    assert raw == ["I am A.", "I am B."]


KINDS = (
    "update_agent_state",
    "process_all_messages_before_reply",
    "process_last_received_message",
    "process_message_before_send",
)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hook_that_fails_leaves_everything_as_it_was(kind: str, tmp_path: Path) -> None:
    events, tasks = await lived(tmp_path, hooks((kind, "all", "stumble")))
    assert events[-1].kind == "run.finished"
    failed: list[Any] = [e.data for e in events if e.kind == "message_hook.failed"]
    assert [(fact.agent, fact.error, fact.message) for fact in failed] == [
        ("A", "RuntimeError", "no hook"),
        ("B", "RuntimeError", "no hook"),
    ]
    assert [task.system for task in (*tasks["A"], *tasks["B"])] == ["Ask.", "Answer."]
    assert told(tasks["B"][0]) == [("workflow", "My number is 4711."), ("A", "I am A.")]


async def test_the_prompt_that_hooks_made_is_on_record_to_the_byte(tmp_path: Path) -> None:
    declared = hooks(
        ("update_agent_state", "all", "tell"),
        ("process_all_messages_before_reply", "all", "last_two"),
    )
    events, tasks = await lived(tmp_path, declared)
    frames = [e.data for e in events if e.kind == "frame.assembled"]
    texts = {s.digest: s.text for frame in frames for s in frame.segments if s.text is not None}
    for frame, task in zip(frames, (tasks["A"][0], tasks["B"][0]), strict=True):
        assert "".join(texts[s.digest] for s in frame.segments) == task.prompt
        assert frame.history.count == 0
