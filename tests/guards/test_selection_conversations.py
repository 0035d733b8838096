"""In a conversation, a turn that would go to a candidate goes to the one that is chosen."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.guards.desks import (
    DESK,
    POOL,
    Broken,
    bob_fails,
    desk,
    fine,
    known,
    only,
    play,
    speakers,
)
from tests.support.folders import write_folder
from tests.support.programs import make_world, refitted
from turnloom.adapters.memory import MemoryBeliefs
from turnloom.agents.spec import Answer, Task
from turnloom.errors import DefinitionError, StoreUnavailable
from turnloom.explain.logic.causes import Causes
from turnloom.explain.logic.route import explain_any_route
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.spec.explanations import NOTHING_DECLARED
from turnloom.explain.spec.route import RouteExplained
from turnloom.explain.spec.timeline import TimelineRow
from turnloom.guards.service import rebuild
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.kernel.values import Json
from turnloom.log.spec import Event

# Seeds with which Ann or Bob is chosen when nothing is known of them.
ANN, BOB = "seed: 5", "seed: 1"


def routes(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(e.data.target, e.data.reason) for e in events if e.kind == "route.decided"]


def selections(events: Sequence[Event]) -> list[TimelineRow]:
    """What the timeline has of choices."""
    told = timeline(events)
    return [row for row in told.rows if row.what == "selection"]


async def test_the_chosen_one_gets_the_turn_and_the_route_stays_true(tmp_path: Path) -> None:
    _, events = await play(desk(tmp_path, BOB))
    assert speakers(events) == ["Desk", "Bob"]
    (_, (meant, rule), (target, reason), _) = routes(events)
    assert (meant, rule, target) == ("Ann", "after_work rule 1", "Bob") and reason != rule
    made = only(events, "selection.made")
    assert (made.meant, made.chosen, made.category, made.chance) == (
        "Ann",
        "Bob",
        "general",
        "1/0/0",
    )
    assert [(each.agent, each.alpha, each.beta) for each in made.candidates] == [
        ("Ann", 2.0, 2.0),
        ("Bob", 2.0, 2.0),
    ]


async def test_who_was_meant_and_is_chosen_needs_no_other_route(tmp_path: Path) -> None:
    _, events = await play(desk(tmp_path, ANN))
    assert speakers(events) == ["Desk", "Ann"]
    assert [target for target, _ in routes(events)] == ["Desk", "Ann", "terminate"]


async def test_the_chain_of_causes_goes_over_the_choice(tmp_path: Path) -> None:
    _, events = await play(desk(tmp_path, BOB))
    turn = next(e for e in events if e.kind == "turn.started" and e.data.agent == "Bob")
    chain = [cause.kind for cause in Causes(events).of(turn)]
    assert chain[:4] == ["route.decided", "selection.made", "route.decided", "turn.finished"]


async def test_the_explanation_shows_candidates_beliefs_and_draws(tmp_path: Path) -> None:
    _, events = await play(desk(tmp_path, f"{BOB}\ncosts: {{Ann: 0.05}}"))
    made = next(event for event in events if event.kind == "selection.made")
    (row,) = selections(events)
    assert (row.seq, row.who) == (made.seq, "Bob")
    routed = [e for e in events if e.kind == "route.decided" and e.data.target in ("Ann", "Bob")]
    assert len(routed) == 2
    for event in routed:
        told = explain_any_route(events, event.seq, NOTHING_DECLARED)
        assert isinstance(told, RouteExplained) and told.selection is not None
        selection = told.selection
        assert (selection.seq, selection.chosen, selection.meant) == (made.seq, "Bob", "Ann")
        assert selection.candidates == made.data.candidates
        for each in made.data.candidates:
            assert f"Beta(2, 2)  {each.draw:.3f}  {each.cost:g}" in str(told)


async def test_success_and_failure_are_learned(tmp_path: Path) -> None:
    world, events = await play(desk(tmp_path, BOB), bob_fails)
    judged = only(events, "selection.judged")
    assert (judged.agent, judged.turn, judged.credit) == ("Bob", 2, 0.0)
    assert events[-1].kind == "run.failed"
    assert await known(world) == {"Bob": Belief(0.0, 1.0)}
    world = replace(world, engine=fine)
    _, events = await play(desk(tmp_path / "other", ANN), world=world)
    assert await known(world) == {"Ann": Belief(1.0, 0.0), "Bob": Belief(0.0, 1.0)}
    _, events = await play(desk(tmp_path / "third"), world=world)
    made = only(events, "selection.made")
    assert [(each.alpha, each.beta) for each in made.candidates] == [(3.0, 2.0), (2.0, 3.0)]


async def test_only_turns_of_chosen_agents_are_judged(tmp_path: Path) -> None:
    _, events = await play(desk(tmp_path))
    assert [e.data.turn for e in events if e.kind == "selection.judged"] == [2]


OUTPUTS = """
    models: {Reply: {type: model, fields: {text: str, confidence: float}}}
    registry: {Ann: Reply, Bob: Reply}
    """


async def test_a_stated_confidence_is_the_credit(tmp_path: Path) -> None:
    async def sure(task: Task) -> Answer:
        output = {"text": "Yes.", "confidence": 0.3}
        return Answer("Hi.") if task.agent == "Desk" else Answer(output=output)

    _, events = await play(desk(tmp_path, files={"structured_outputs.yaml": OUTPUTS}), sure)
    assert only(events, "selection.judged").credit == 0.3


async def test_a_confident_failure_is_a_failure(tmp_path: Path) -> None:
    """An output that is refused to the end is no answer, however sure it is."""

    async def boasting(task: Task) -> Answer:
        return Answer("Hi.") if task.agent == "Desk" else Answer(output={"confidence": 0.99})

    _, events = await play(desk(tmp_path, files={"structured_outputs.yaml": OUTPUTS}), boasting)
    assert only(events, "selection.judged").credit == 0.0


@pytest.mark.parametrize(
    ("code", "credit", "note"),
    [
        ("return 0.5 if answer.endswith('did it.') else 0", 0.5, ""),
        ("return False", 0.0, ""),
        ("return 3", 1.0, "3"),
        ("raise KeyError('secret')", 1.0, "KeyError"),
    ],
)
async def test_a_function_may_say_the_credit(
    tmp_path: Path, code: str, credit: float, note: str
) -> None:
    files = {"guards.py": f"def rate(answer):\n    {code}\n"}
    _, events = await play(desk(tmp_path, "score: rate", files))
    judged = only(events, "selection.judged")
    assert judged.credit == credit and bool(judged.note) == bool(note)
    assert note in judged.note and "secret" not in judged.note


# ------------------------------------------------------------------ categories

TOPIC = {
    "context_variables.yaml": """
        definitions:
          topic: {type: string, source: {type: static, value: billing}}
          tier: {type: integer, source: {type: static, value: 3}}
          unset: {type: string, source: {type: derived}}
        """,
    "guards.py": "def by_tier(values):\n    return 'gold' if values['tier'] > 2 else None\n"
    "def stumble(values):\n    raise LookupError(values['topic'])\n"
    "def wild(values):\n    return object()\n",
}


@pytest.mark.parametrize(
    ("declared", "category", "note"),
    [
        ("refunds", "refunds", ""),
        ("{variable: topic}", "billing", ""),
        ("{variable: tier}", "3", ""),
        ("{variable: user_id}", "u1", ""),
        ("{variable: unset}", "general", "'unset'"),
        ("{function: by_tier}", "gold", ""),
        ("{function: wild}", "general", "category"),
        ("{function: stumble}", "general", "LookupError"),
    ],
)
async def test_where_the_category_comes_from(
    tmp_path: Path, declared: str, category: str, note: str
) -> None:
    world, events = await play(desk(tmp_path, f"category: {declared}", TOPIC))
    made = only(events, "selection.made")
    assert made.category == category and len(made.notes) == bool(note)
    assert all(note in each for each in made.notes)
    assert only(events, "selection.judged").category == category
    assert [*await known(world, POOL._replace(category=category))] == [made.chosen]


async def problems(folder: str) -> list[tuple[str, int, str]]:
    with pytest.raises(DefinitionError) as refused:
        await play(folder)
    return [(each.file, each.line, each.code) for each in refused.value.diagnostics]


async def test_a_function_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    said = "category: {function: by_teir}\nscore: rate"
    found = await problems(desk(tmp_path / "a", said, TOPIC))
    assert found == [("Flow/orchestrator.yaml", line, "W043") for line in (5, 6)]
    found = await problems(desk(tmp_path / "b", said))
    assert found == [("Flow/orchestrator.yaml", line, "W040") for line in (5, 6)]


# ------------------------------------------------------------------ who is left

ABSENT = {
    "context_variables.yaml": """
        definitions:
          absent: {type: array, source: {type: static, value: %s}}
        """
}


def absent(names: str) -> dict[str, str]:
    return {file: text % names for file, text in ABSENT.items()}


@pytest.mark.parametrize("said", ["exclude: [Ann]", "exclude_variable: absent"])
async def test_who_is_excluded_gets_no_turn(tmp_path: Path, said: str) -> None:
    _, events = await play(desk(tmp_path, f"{ANN}\n{said}", absent("[Ann]")))
    assert speakers(events) == ["Desk", "Bob"]
    assert only(events, "selection.made").excluded == ("Ann",)


async def test_without_candidates_the_run_fails_and_says_why(tmp_path: Path) -> None:
    said = "exclude_variable: absent"
    _, events = await play(desk(tmp_path, said, absent("[Ann, Bob]")))
    assert speakers(events) == ["Desk"]
    failed = only(events, "run.failed")
    assert failed.error == "no candidates" and "'general'" in failed.message
    (row,) = selections(events)
    assert row.who not in ("Ann", "Bob") and "'general'" in row.note


# ------------------------------------------------------------------ what the chosen one declares


async def test_rules_before_the_reply_of_the_chosen_one_are_judged(tmp_path: Path) -> None:
    files = {
        "context_variables.yaml": """
            definitions:
              away: {type: boolean, source: {type: environment, env_var: AWAY, default: true}}
            """,
        "handoffs.yaml": DESK["handoffs.yaml"]
        + """
        - source_agent: Bob
          target_agent: terminate
          handoff_type: condition
          condition_scope: pre
          condition: away is true
        """,
    }
    _, events = await play(desk(tmp_path, f"{BOB}\nexclude: [Ann]", files))
    assert [target for target, _ in routes(events)] == ["Desk", "Ann", "Bob", "terminate"]
    assert speakers(events) == ["Desk"]
    assert not [e for e in events if e.kind == "selection.judged"]


async def test_the_limit_of_the_chosen_one_holds(tmp_path: Path) -> None:
    agents = DESK["agents.yaml"].replace(
        "You are Bob.", "You are Bob., max_consecutive_auto_reply: 1"
    )
    files = {
        "agents.yaml": agents,
        "handoffs.yaml": """
            - {source_agent: Desk, target_agent: Ann, handoff_type: after_work}
            - {source_agent: Ann, target_agent: Desk, handoff_type: after_work}
            - {source_agent: Bob, target_agent: Desk, handoff_type: after_work}
            """,
    }
    _, events = await play(desk(tmp_path, "exclude: [Ann]", files))
    assert speakers(events) == ["Desk", "Bob", "Desk"]
    reason = only(events, "run.finished").reason
    assert "max_consecutive_auto_reply" in reason and "Bob" in reason


async def test_candidates_are_reached_through_each_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing hands over to Bob, and he gets turns that would go to Ann."""
    await play(desk(tmp_path / "chosen"))
    assert caplog.text == ""
    alone = {"orchestrator.yaml": "initial_agent: Desk", **DESK}
    await play(write_folder(tmp_path / "alone", alone))
    assert caplog.text.count("W030") == 1 and "'Bob'" in caplog.text


# ------------------------------------------------------------------ trouble with beliefs


@pytest.mark.parametrize("error", [StoreUnavailable("The disk is full."), RuntimeError("odd")])
async def test_beliefs_that_cannot_be_had_cost_no_turn(
    tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    world = refitted(make_world(fine), beliefs=Broken(error))
    with caplog.at_level(logging.WARNING, "turnloom.guards"):
        _, events = await play(desk(tmp_path), world=world)
    assert events[-1].kind == "run.finished"
    made = only(events, "selection.made")
    (note,) = made.notes
    assert str(error) in note
    assert {(each.alpha, each.beta) for each in made.candidates} == {(2.0, 2.0)}
    assert "run1" in caplog.text
    later = MemoryBeliefs()
    await rebuild(world.store.log, later, "local")
    assert (await later.beliefs(POOL, ["Ann", "Bob"]))[made.chosen] == Belief(1.0, 0.0)


class Slow(MemoryBeliefs):
    """Beliefs that take for ever."""

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        await asyncio.Event().wait()
        return {}

    async def observe(self, observations: Sequence[Observation]) -> None:
        await asyncio.Event().wait()


async def test_slow_beliefs_are_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "turnloom.guards"):
        _, events = await play(desk(tmp_path), world=refitted(make_world(fine), beliefs=Slow()))
    assert events[-1].kind == "run.finished"
    (note,) = only(events, "selection.made").notes
    assert "1 s" in note and "1 s" in caplog.text and "run1" in caplog.text


async def test_tenants_do_not_learn_from_each_other(tmp_path: Path) -> None:
    world, events = await play(desk(tmp_path))
    other = POOL._replace(tenant="other")
    assert await known(world, other) == {}
    assert await known(world)
    assert only(events, "selection.judged").tenant == "local"


SECRET = {
    "context_variables.yaml": """
        definitions:
          key: {type: string, secret: true, source: {type: environment, env_var: KEY}}
        """
}


async def test_a_secret_is_no_category_that_others_read(tmp_path: Path) -> None:
    folder = desk(tmp_path, "category: {variable: key}", SECRET)
    _, events = await play(folder, world=make_world(fine, env={"KEY": "hunter2-hunter2"}))
    said: Json = [msg.data for msg in events if msg.kind.startswith("selection.")]
    assert "hunter2" not in repr(said)
    assert said[0].category == said[1].category


class Noted(MemoryBeliefs):
    """Beliefs that note in which categories they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.categories: list[str] = []

    async def beliefs(self, pool: Pool, agents: Sequence[str]) -> Mapping[str, Belief]:
        self.categories.append(pool.category)
        return await super().beliefs(pool, agents)


async def test_beliefs_are_not_asked_for_by_a_secret(tmp_path: Path) -> None:
    code = "def tell(values):\n    return 'hunter2' + '-hunter2'\n"
    folder = desk(tmp_path, "category: {function: tell}", SECRET | {"guards.py": code})
    beliefs = Noted()
    world = refitted(make_world(fine, env={"KEY": "hunter2-hunter2"}), beliefs=beliefs)
    await play(folder, world=world)
    assert beliefs.categories == ["⟨secret:key⟩"]


@pytest.mark.parametrize("declared", ["category: {function: fail}", "score: fail"])
async def test_what_goes_wrong_in_a_function_is_logged_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, declared: str
) -> None:
    code = "def fail(given):\n    raise LookupError('hunter2' + '-hunter2')\n"
    folder = desk(tmp_path, declared, SECRET | {"guards.py": code})
    with caplog.at_level(logging.WARNING, "turnloom.guards"):
        await play(folder, world=make_world(fine, env={"KEY": "hunter2-hunter2"}))
    assert "LookupError: ⟨secret:key⟩" in caplog.text
    assert "hunter2-hunter2" not in caplog.text


async def test_the_same_run_with_the_same_seed_chooses_the_same(tmp_path: Path) -> None:
    one = only((await play(desk(tmp_path / "a", "seed: 9")))[1], "selection.made")
    two = only((await play(desk(tmp_path / "b", "seed: 9")))[1], "selection.made")
    assert one == two
    drawn: set[Any] = {
        only((await play(desk(tmp_path / str(n), f"seed: {n}")))[1], "selection.made").chosen
        for n in range(6)
    }
    assert drawn == {"Ann", "Bob"}
