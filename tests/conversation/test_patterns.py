"""Who speaks next when no rule fires, in whole runs of every pattern."""

from pathlib import Path
from typing import Any

import pytest

from tests.conversation.casts import ROSTER, Speaking, folder, reasons, rule, speakers
from tests.support.folders import write_folder
from tests.support.lives import Lives
from tests.support.plays import answering, every, only, play
from turnloom.agents.spec import Answer, Task


async def test_the_default_ends_unless_a_person_is_in_the_loop(tmp_path: Path) -> None:
    files = folder({"initial_agent": "B"})
    assert speakers(await play(tmp_path / "1", files, engine=Speaking())) == "B"
    files = folder({"initial_agent": "B", "human_in_the_loop": True, "max_turns": 3})
    events = await play(tmp_path / "2", files, answering("x", "y"), Speaking())
    assert speakers(events) == "B user B user B"
    assert reasons(events)[-1] == "max_turns: 3 reached"


@pytest.mark.parametrize(
    ("setup", "spoke"),
    [
        ({"max_turns": 5}, "A B C A B"),
        ({"initial_agent": "C", "max_turns": 4}, "C A B C"),
        ({"human_in_the_loop": True, "max_turns": 4}, "A B C user A"),
        ({"startup_mode": "UserDriven", "max_turns": 3}, "user A B C"),
        ({"startup_mode": "UserDriven", "initial_agent": "B", "max_turns": 3}, "user B C A"),
        ({"startup_mode": "BackendOnly", "max_turns": 3}, "A B C"),
    ],
)
async def test_in_a_round_everybody_has_their_turn(
    setup: dict[str, Any], spoke: str, tmp_path: Path
) -> None:
    files = folder({"orchestration_pattern": "RoundRobinPattern", **setup})
    events = await play(tmp_path, files, answering("Hi.", "Hi."), Speaking())
    assert speakers(events) == spoke


async def test_a_round_goes_on_behind_whom_a_rule_made_ask_the_user(tmp_path: Path) -> None:
    setup = {"orchestration_pattern": "RoundRobinPattern", "max_turns": 4}
    files = folder(setup, rule("B", "user"))
    events = await play(tmp_path, files, answering("Hi.", "Hi."), Speaking())
    assert speakers(events) == "A B user C A"


@pytest.mark.parametrize(
    ("setup", "spoke"),
    [
        # Chance without chance: the first draw takes the first, the next one the second, and so on.
        ({}, "A B C A C"),
        ({"human_in_the_loop": True}, "A B C user A C"),
        ({"startup_mode": "UserDriven", "initial_agent": "C"}, "user C A C A C"),
    ],
)
async def test_chance_picks_once_and_is_on_record(
    setup: dict[str, Any], spoke: str, tmp_path: Path
) -> None:
    files = folder({"orchestration_pattern": "RandomPattern", "max_turns": 5, **setup})
    events = await play(tmp_path, files, answering("Hi.", "Hi."), Speaking())
    assert speakers(events) == spoke
    for drawn in every(events, "chance.drawn"):
        assert drawn.drawn in drawn.among
    assert "no rule fired: chance picked" in reasons(events)


async def test_what_was_drawn_is_not_drawn_again_after_a_kill(tmp_path: Path) -> None:
    setup = {"orchestration_pattern": "RandomPattern", "max_turns": 4}
    script = {"agents": {name: ["1", "2", "3", "4"] for name in ROSTER}}
    where = write_folder(tmp_path, folder(setup, script=script))
    whole = Lives(where, answering())
    undisturbed = await whole.live()
    for points in range(whole.passed):
        events = await Lives(where, answering()).live(points)
        drawn = [each.drawn for each in every(events, "chance.drawn")]
        assert len(drawn) == len(every(undisturbed, "chance.drawn"))
        assert speakers(events).split()[1:] == drawn


PICKS = [
    Answer(output={"agent": "C"}),
    "B",
    '{"agent": "A"}',
    '```json\n{"agent": "user"}\n```',
    " C ",
]


async def test_a_model_picks_who_speaks_and_is_told_of_everybody(tmp_path: Path) -> None:
    setup = {"orchestration_pattern": "AutoPattern", "max_turns": 5, "human_in_the_loop": True}
    engine = Speaking(selector=PICKS)
    events = await play(tmp_path, folder(setup), answering("Hi."), engine)
    assert speakers(events) == "A C B A user C"
    first = next(task for task in engine.tasks if task.agent == "selector")
    assert "- B: You are B." in first.system and "- user: the person" in first.system
    assert first.output is not None
    assert first.output.schema["properties"] == {"agent": {"enum": ["B", "C", "user"]}}
    assert [message.author for message in first.transcript] == ["A"]
    assert [each.picked for each in every(events, "speaker.picked")] == ["C", "B", "A", "user", "C"]
    assert "no rule fired: the model picked" in reasons(events)


async def test_a_script_has_lines_for_the_selector(tmp_path: Path) -> None:
    setup = {"orchestration_pattern": "AutoPattern", "max_turns": 3}
    script = {"agents": {**{name: ["Hm."] for name in ROSTER}, "selector": ["C", "B"]}}
    where = write_folder(tmp_path, folder(setup, script=script))
    whole = Lives(where, answering())
    undisturbed = await whole.live()
    assert speakers(undisturbed) == "A C B"
    for points in range(whole.passed):
        assert speakers(await Lives(where, answering()).live(points)) == "A C B"


@pytest.mark.parametrize(
    ("pick", "says"),
    [
        ("D", "'D'"),
        ("A", "B, C"),
        ("", "B, C"),
        (Answer(output={"agent": ["B"]}), "B, C"),
        (Answer(output=["B"]), "B, C"),
        (None, "Answer"),
        (Answer("B", model="\ud800"), "model"),
    ],
)
async def test_a_model_that_picks_nobody_fails_the_run_clearly(
    pick: Any, says: str, tmp_path: Path
) -> None:
    async def engine(task: Task) -> Any:
        if task.agent == "selector":
            return Answer(pick) if isinstance(pick, str) else pick
        return Answer("Hm.")

    files = folder({"orchestration_pattern": "AutoPattern", "max_turns": 3})
    events = await play(tmp_path, files, engine=engine)
    assert speakers(events) == "A"
    failed = only(events, "run.failed")
    assert failed.error == "no speaker could be picked" and says in failed.message
    answered = [each.raw for each in every(events, "model.answered") if each.agent == "selector"]
    assert len(answered) == (says not in ("Answer", "model"))


async def test_the_model_that_picked_is_on_record(tmp_path: Path) -> None:
    async def engine(task: Task) -> Answer:
        return Answer("B" if task.agent == "selector" else "Hm.", model="m-1", added=("Go on.",))

    files = folder({"orchestration_pattern": "AutoPattern", "max_turns": 2})
    events = await play(tmp_path, files, engine=engine)
    made = {each.agent: (each.model, each.added) for each in every(events, "model.answered")}
    assert made == dict.fromkeys(("A", "selector", "B"), ("m-1", ("Go on.",)))


async def test_the_user_picks_who_speaks_and_when_it_ends(tmp_path: Path) -> None:
    setup = {"orchestration_pattern": "ManualPattern", "human_in_the_loop": True}
    picks = answering("C", "user", "Hello.", "A", "terminate")
    events = await play(tmp_path, folder(setup), picks, Speaking())
    assert speakers(events) == "A C user A"
    first = every(events, "question.asked")[0]
    assert (first.prompt, first.tool) == ("Who speaks next?", "selector")
    assert first.schema == {"enum": ["A", "B", "C", "user", "terminate"]}
    assert reasons(events)[-1] == "no rule fired: the user picked"
    assert only(events, "run.finished")


async def test_rules_come_before_every_pattern(tmp_path: Path) -> None:
    for pattern in ("RoundRobinPattern", "RandomPattern", "AutoPattern", "ManualPattern"):
        files = folder({"orchestration_pattern": pattern}, rule("A", "C"), rule("C", "terminate"))
        events = await play(tmp_path / pattern, files, engine=Speaking())
        assert speakers(events) == "A C"
