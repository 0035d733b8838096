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

    def forget(*given):
        pass

    def count(*given):
        return 4711

    def list_nothing(messages):
        return [None for message in messages]

    def name_only(messages):
        return [{"name": "A"}]

    def wrap(sender, message, recipient, silent):
        return {"content": None, "text": message}

    def muddle(agent, messages):
        agent.system_message = None
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


STATE, ALL, LAST, SEND = KINDS


def failures(events: list[Event]) -> list[tuple[str, str]]:
    failed: list[Any] = [e.data for e in events if e.kind == "message_hook.failed"]
    assert not [e for e in events if e.kind == "message_hook.returned"]
    return [(fact.agent, fact.error) for fact in failed]


@pytest.mark.parametrize(
    ("kind", "function", "error"),
    [
        (LAST, "stumble", "RuntimeError"),
        (LAST, "forget", "TypeError"),
        (LAST, "count", "TypeError"),
        (ALL, "stumble", "RuntimeError"),
        (ALL, "forget", "TypeError"),
        (ALL, "count", "TypeError"),
        (ALL, "list_nothing", "TypeError"),
        (ALL, "name_only", "TypeError"),
    ],
)
async def test_what_a_hook_was_to_change_and_did_not_is_not_read(
    kind: str, function: str, error: str, tmp_path: Path
) -> None:
    events, tasks = await lived(tmp_path, hooks((kind, "A", function)))
    assert events[-1].kind == "run.finished"
    assert failures(events) == [("A", error)]
    ((author, text),) = told(tasks["A"][0])
    assert author == "workflow" and repr(function) in text
    assert "4711" not in tasks["A"][0].prompt
    assert told(tasks["B"][0])[0] == ("workflow", "My number is 4711.")


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("stumble", "RuntimeError"),
        ("forget", "TypeError"),
        ("count", "TypeError"),
        ("wrap", "TypeError"),
    ],
)
async def test_what_a_hook_was_to_change_and_did_not_is_not_said(
    function: str, error: str, tmp_path: Path
) -> None:
    events, tasks = await lived(tmp_path, hooks((SEND, "A", function)))
    assert events[-1].kind == "run.finished"
    assert failures(events) == [("A", error)]
    first, second = [e.data.text for e in events if e.kind == "agent.text"]
    assert repr(function) in first and "I am A." not in first
    assert second == "I am B."
    assert told(tasks["B"][0])[1] == ("A", first)


async def test_a_hook_after_one_that_failed_gets_nothing_of_the_message(tmp_path: Path) -> None:
    declared = hooks((SEND, "A", "forget"), (SEND, "A", "sign"), (ALL, "A", "last_two"))
    events, _ = await lived(tmp_path, declared)
    first, _ = [e.data.text for e in events if e.kind == "agent.text"]
    assert first.endswith(" -- A") and "I am A." not in first


@pytest.mark.parametrize(
    ("function", "error"), [("stumble", "RuntimeError"), ("muddle", "TypeError")]
)
async def test_instructions_stay_as_they_were_when_their_hook_fails(
    function: str, error: str, tmp_path: Path
) -> None:
    events, tasks = await lived(tmp_path, hooks((STATE, "all", function)))
    assert events[-1].kind == "run.finished"
    assert failures(events) == [("A", error), ("B", error)]
    assert [task.system for task in (*tasks["A"], *tasks["B"])] == ["Ask.", "Answer."]
    assert told(tasks["B"][0]) == [("workflow", "My number is 4711."), ("A", "I am A.")]


async def test_a_hook_for_instructions_gives_nothing_back(tmp_path: Path) -> None:
    events, _ = await lived(tmp_path, hooks((STATE, "all", "forget")))
    assert not [e for e in events if e.kind == "message_hook.failed"]


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
