"""Runs that nothing ends, and agents at whom a run ends unsaid, are found before they run."""

from pathlib import Path
from typing import Any

import pytest

from tests.conversation.casts import VARIABLES, Speaking, chooses, folder, rule, speakers
from tests.conversation.talks import examine
from tests.support.plays import play


@pytest.mark.parametrize(
    ("setup", "rules", "says"),
    [
        ({}, [rule("A", "B"), rule("B", "A")], ["A, B"]),
        ({}, [rule("A", "B"), rule("B", "B")], ["A, B"]),
        ({}, [rule("A", "B", "red is true"), rule("A", "terminate"), rule("B", "B")], ["B"]),
        ({"orchestration_pattern": "RandomPattern"}, [], ["A, B"]),
        ({"orchestration_pattern": "AutoPattern"}, [rule("A", "B", "red is true")], ["A, B"]),
        ({}, [rule("A", "B", "red is true")], ["'A'"]),
        ({}, [chooses("A", "B", "It is over.")], ["'A'"]),
        ({}, [rule("A", "B", "red is true", handoff_type="after_work")], ["'A'"]),
        # and what is right
        ({"max_turns": 9}, [rule("A", "B"), rule("B", "A")], []),
        ({}, [rule("A", "B"), rule("B", "A"), rule("B", "terminate", "red is true")], []),
        ({}, [rule("A", "B"), rule("B", "user")], []),
        ({"orchestration_pattern": "ManualPattern"}, [], []),
        ({"orchestration_pattern": "AutoPattern", "human_in_the_loop": True}, [], []),
        ({"orchestration_pattern": "RoundRobinPattern"}, [rule("B", "terminate")], []),
        ({"human_in_the_loop": True}, [rule("A", "B", "red is true")], []),
        ({}, [rule("A", "B")], []),
        ({}, [rule("A", "B", "red is true"), rule("A", "A", "red is false")], []),
        (
            {},
            [
                rule("A", "B", 'stage is "one"'),
                rule("A", "A", 'stage is "two"'),
                chooses("A", "B", "It is over."),
            ],
            [],
        ),
    ],
)
def test_ends_that_are_missing_or_unsaid_are_named(
    setup: dict[str, Any], rules: list[dict[str, Any]], says: list[str]
) -> None:
    stage = {
        "type": "string",
        "enum": ["one", "two"],
        "source": {
            "type": "derived",
            "default": "one",
            "triggers": [{"type": "agent_turn_count", "agent": "A", "count": 2, "value": "two"}],
        },
    }
    variables = {"definitions": {**VARIABLES["definitions"], "stage": stage}}
    files = folder(setup, *rules, agents={"A": {}, "B": {}}, context_variables=variables)
    found = [problem for problem in examine(files)[1] if problem.code == "W054"]
    for problem, words in zip(found, says, strict=True):
        assert words in problem.message


async def test_an_agent_that_can_end_its_run_by_falling_silent_is_no_endless_one(
    tmp_path: Path,
) -> None:
    agents = {"A": {"max_consecutive_auto_reply": 3}, "B": {}}
    files = folder({}, rule("A", "B"), rule("B", "A"), agents=agents)
    assert examine(files)[1] == []
    assert speakers(await play(tmp_path, files, engine=Speaking())) == "A B A B A B"
