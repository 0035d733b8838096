"""Loop detection: which turns are a loop, and what is done about it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guards.runs import Says, go_on
from tests.reaction.scenes import SOON, Clerk, Order, Parcel
from tests.support.plays import answering, every, last, only
from turnloom import DefinitionError, Loom, LoopDetection, Task, Weights
from turnloom.guards.logic.loops import (
    HINTS,
    LoopVerdict,
    detect,
    needs_similarity,
    recover,
    similarity,
)
from turnloom.guards.spec import TurnDigest, Watch
from turnloom.log.spec import Event
from turnloom.testing import HashingEmbedder

USUAL = LoopDetection()


def turns(actions: str, *, stuck: bool = False, frustrated: bool = False) -> list[TurnDigest]:
    """Turns that do what a letter says, each by the agent of that letter."""
    return [
        TurnDigest(n, each.upper(), each, f"says {each}", not stuck, frustrated)
        for n, each in enumerate(actions, 1)
    ]


def loop(actions: str, detection: LoopDetection = USUAL, **more: Any) -> str:
    return detect(detection, turns(actions, **more)).loop


# ------------------------------------------------------------------ which turns are a loop


@pytest.mark.parametrize(
    ("actions", "named"),
    [
        ("aaaa", "insufficient"),
        ("aaaaa", "exact_repetition"),
        ("zzaaaaa", "exact_repetition"),
        ("abab", "insufficient"),
        ("xabab", "oscillation"),
        ("abcabc", "oscillation"),
        ("abcdabcd", "oscillation"),
        ("aabaab", "oscillation"),
        ("abcde", ""),
        ("aaaab", ""),
        ("aaaaabcde", ""),
        ("abcabd", ""),
    ],
)
def test_turns_are_named(actions: str, named: str) -> None:
    assert loop(actions) == named


def test_turns_that_bring_nothing_forward_are_named() -> None:
    assert loop("abcde", stuck=True) == "no_progress"
    assert loop("xabab", stuck=True) == "oscillation"  # not masked
    assert loop("aaaaa", stuck=True) == "exact_repetition"


@given(st.text("abcdef", min_size=2, max_size=5), st.text("uvwxyz", max_size=6))
def test_any_period_that_fits_twice_is_found(period: str, before: str) -> None:
    verdict = detect(LoopDetection(window=4), turns(before + period + period))
    is_same = len(set(period)) == 1
    assert verdict.loop == ("exact_repetition" if is_same and len(period) > 1 else "oscillation")


@given(st.text("ab", max_size=12), st.integers(2, 20))
def test_fewer_turns_than_the_window_are_not_enough(actions: str, window: int) -> None:
    is_enough = len(actions) >= window
    assert (loop(actions, LoopDetection(window=window)) != "insufficient") == is_enough


@given(st.text("abc", min_size=5, max_size=5), st.text("xyz", max_size=10), st.floats(0, 1))
def test_what_was_before_the_window_does_not_count(
    recent: str, before: str, semantic: float
) -> None:
    alone = detect(USUAL, turns(recent), semantic)
    after = detect(USUAL, turns(before + recent), semantic)
    assert after.loop == alone.loop


def test_signs_add_up_by_their_weights() -> None:
    """Each sign in turn is all that counts."""
    entries = turns("aaaab", frustrated=True)
    scores = detect(USUAL, entries, 0.5).scores
    assert scores.confidence == pytest.approx(0.4 * 0.8 + 0.3 * 0.5 + 0.1)
    assert detect(USUAL, entries, 0.5).loop == ""
    assert detect(LoopDetection(threshold=0.5), entries, 0.5).loop == "exact_repetition"
    none = Weights(repetition=0, semantic=0, no_progress=0, frustration=1).model_dump()
    found = {
        sign: detect(
            LoopDetection(weights=Weights(**{**none, "frustration": 0, sign: 1})), entries, 0.8
        )
        for sign in none
    }
    assert {sign: (each.loop, each.scores.confidence) for sign, each in found.items()} == {
        "repetition": ("exact_repetition", 0.8),
        "semantic": ("semantic_repetition", 0.8),
        "no_progress": ("", 0.0),
        "frustration": ("frustration", 1.0),
    }


def test_texts_are_compared_only_where_that_can_make_a_difference() -> None:
    assert needs_similarity(USUAL, turns("abcde"))
    assert not needs_similarity(USUAL, turns("abcd"))
    assert not needs_similarity(USUAL, turns("aaaaa"))
    assert not needs_similarity(USUAL, turns("xabab"))
    assert not needs_similarity(LoopDetection(similarity=None), turns("abcde"))


@given(st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), max_size=6))
def test_similarity_is_a_share(vectors: list[list[float]]) -> None:
    assert 0 <= similarity(vectors) <= 1


async def test_texts_are_alike_that_say_nearly_the_same() -> None:
    embed = HashingEmbedder().embed
    same = [f"I would book the flight to Rome on {day}" for day in ("Monday", "Tuesday", "Friday")]
    others = ["I would book the flight", "Where is my umbrella?", "Two and two make four."]
    assert similarity(await embed(same)) > 0.8 > similarity(await embed(others))


# ------------------------------------------------------------------ what is done about it


def test_whoever_cannot_be_relieved_gets_a_hint() -> None:
    verdict = LoopVerdict(
        "semantic_repetition", turns("aabba"), detect(USUAL, turns("aabba")).scores
    )
    relieved = recover(USUAL, Watch(), verdict, ["A", "B", "C"])
    assert (relieved.strategy, relieved.instead_of) == ("rotate_agent", "")
    alone = recover(USUAL, Watch(), verdict, ["A", "B"])
    assert (alone.strategy, alone.instead_of) == ("inject_variation", "rotate_agent")
    assert alone.hint == HINTS["inject_variation"]


def guards(**detection: Any) -> dict[str, Any]:
    return {"loop_detection": {"window": 3, "similarity": None, **detection}}


def hints(tasks: Sequence[Task]) -> list[str]:
    """What each task says because of a loop."""
    found = {text: strategy for strategy, text in HINTS.items()}
    return [next((found[text] for text in found if text in each.system), "") for each in tasks]


async def test_an_agent_that_repeats_itself_is_told_to_vary_once(tmp_path: Path) -> None:
    engine = Says("Again.")
    events = await go_on(tmp_path, guards(), engine=engine, max_turns=5)
    found = only(events, "loop.detected")
    assert (found.loop, found.turns, found.agents) == ("exact_repetition", (1, 2, 3), ("A",))
    assert (found.scores.repetition, found.strategy) == (1.0, "inject_variation")
    assert hints(engine.tasks) == ["", "", "", "inject_variation", ""]
    frames = every(events, "frame.assembled")
    ((hint,),) = [[each for each in frame.segments if each.kind == "hint"] for frame in frames[3:4]]
    assert hint.origin == "guards.loop_detection" and "exact_repetition" in hint.reason


async def test_agents_that_go_back_and_forth_are_told_to_sum_up(tmp_path: Path) -> None:
    engine = Says("Yes.", "No.")
    events = await go_on(tmp_path, guards(), "A", "B", engine=engine, max_turns=7)
    found = every(events, "loop.detected")[0]
    assert (found.loop, found.turns, found.strategy) == ("oscillation", (1, 2, 3, 4), "synthesise")
    assert hints(engine.tasks) == ["", "", "", "", "synthesise", "synthesise", ""]


async def test_turns_that_fail_at_their_tools_are_told_to_go_step_by_step(tmp_path: Path) -> None:
    lines = [text for n in range(9) for text in (["missing"], f"Try {n}.")]
    engine = Says(*lines)
    detection = guards(strategies={"no_progress": "decompose"})
    events = await go_on(tmp_path, detection, engine=engine, max_turns=4)
    assert only(events, "loop.detected").loop == "no_progress"
    assert [each.entry.progress for each in every(events, "loop.checked")] == [False] * 4
    assert hints(engine.tasks)[-1] == "decompose"


async def test_another_agent_speaks_in_place_of_one_that_repeats_itself(tmp_path: Path) -> None:
    rules = {"strategies": {"exact_repetition": "rotate_agent"}}
    files_rules = [{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}]
    events = await go_on(
        tmp_path, guards(**rules), "A", "B", engine=Says("Again."), max_turns=4, rules=files_rules
    )
    assert [each.agent for each in every(events, "turn.started")] == ["A", "A", "A", "B"]
    route = every(events, "route.decided")[3]
    assert route.target == "B" and "A" in route.reason


@pytest.mark.parametrize(("answer", "ended"), [("continue", "finished"), ("STOP ", "failed")])
async def test_a_person_is_asked(tmp_path: Path, answer: str, ended: str) -> None:
    detection = guards(strategies={"exact_repetition": "escalate"})
    person = answering(answer)
    events = await go_on(tmp_path, detection, engine=Says("Again."), person=person, max_turns=5)
    asked = only(events, "question.asked")
    assert (asked.tool, asked.to) == ("loop_detection", "u1")
    assert "exact_repetition" in asked.prompt
    assert events[-1].kind == f"run.{ended}"
    if ended == "failed":
        assert events[-1].data.error == "loop detected"
        assert len(every(events, "turn.started")) == 3


async def test_what_a_person_answers_is_told_to_the_agent(tmp_path: Path) -> None:
    detection = guards(strategies={"exact_repetition": "escalate"})
    engine = Says("Again.")
    person = answering("Ask for the price.")
    await go_on(tmp_path, detection, engine=engine, person=person, max_turns=5)
    shown = ["Ask for the price." in task.system for task in engine.tasks]
    assert shown == [False, False, False, True, False]


async def test_a_loop_may_stop_the_run(tmp_path: Path) -> None:
    detection = guards(strategies={"exact_repetition": "stop"})
    events = await go_on(tmp_path, detection, engine=Says("Again."))
    assert last(events, "run.failed").error == "loop detected"
    assert "exact_repetition" in last(events, "run.failed").message


@pytest.mark.parametrize("resets", [0, 2])
async def test_a_loop_that_comes_back_too_often_is_the_end_of_it(
    tmp_path: Path, resets: int
) -> None:
    detection = guards(max_resets=resets, then="stop")
    events = await go_on(tmp_path, detection, engine=Says("Again."))
    found = [(each.strategy, each.recoveries) for each in every(events, "loop.detected")]
    assert found == [*(("inject_variation", n) for n in range(resets)), ("stop", resets)]
    assert last(events, "run.failed").error == "loop detected"


async def test_what_the_user_says_makes_a_beginning(tmp_path: Path) -> None:
    rules = [
        {"source_agent": "A", "target_agent": "user", "handoff_type": "after_work"},
        {"source_agent": "user", "target_agent": "A", "handoff_type": "after_work"},
    ]
    person = answering(*["And?"] * 9)
    events = await go_on(
        tmp_path, guards(), engine=Says("Hm."), person=person, max_turns=5, rules=rules
    )
    assert not every(events, "loop.detected")


async def test_texts_that_are_nearly_the_same_are_found_with_the_embedder(tmp_path: Path) -> None:
    said = [f"I would book the flight to Rome on the {n}th of May." for n in (4, 5, 6, 7)]
    detection = guards(similarity=0.85)
    events = await go_on(tmp_path, detection, engine=Says(*said), max_turns=3)
    checked = every(events, "loop.checked")
    assert [each.similarity is None for each in checked] == [True, True, False]
    assert checked[-1].embedder.startswith("wordllama@")
    found = only(events, "loop.detected")
    assert (found.loop, found.instead_of) == ("semantic_repetition", "rotate_agent")


async def test_nothing_is_on_record_without_loop_detection(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {}, engine=Says("Again."), max_turns=7)
    assert not [event for event in events if event.kind.startswith("loop.")]


@pytest.mark.parametrize(
    ("detection", "code", "value"),
    [
        ({"window": 1}, "W012", "'window'"),
        ({"weights": {"repetition": 1}}, "W012", "1.6"),
        ({"strategies": {"oscillation": "rotate_agents"}}, "W012", "'rotate_agent'"),
        ({"strategies": {"oscilation": "stop"}}, "W010", "'oscillation'"),
    ],
)
async def test_detection_that_makes_no_sense_is_refused(
    tmp_path: Path, detection: Mapping[str, Any], code: str, value: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        await go_on(tmp_path, {"loop_detection": detection})
    (problem,) = refused.value.diagnostics
    assert problem.code == code and value in f"{problem.message} {problem.remedy}"


async def test_nobody_is_asked_where_there_is_nobody(tmp_path: Path) -> None:
    strategies = {"frustration": "escalate"}
    with pytest.raises(DefinitionError) as refused:
        await go_on(tmp_path, guards(strategies=strategies), startup_mode="BackendOnly")
    told = [each.message for each in refused.value.diagnostics if each.code == "W033"]
    assert any("strategies.frustration" in each for each in told)
    assert any("then" in each for each in told)


# ------------------------------------------------------------------ on a board


async def board_run(guards: dict[str, Any], make: Any, *answers: str) -> tuple[list[Event], Clerk]:
    """The log of a run in which an agent is woken by what it makes, and what it was given."""
    clerk = Clerk(make)
    async with Loom(store="memory") as app:
        board = app.board(guards=guards, max_turns=12)
        agent = board.agent("one").consumes(Order).publishes(Order).prevent_self_trigger(False)
        agent.with_engines(clerk)
        order = await board.publish(Order())
        assert order.run
        await board.run_until_idle(SOON, raise_errors=False)
        for answer in answers:
            await app.handle(order.run).answer(None, answer)
            await board.run_until_idle(SOON, raise_errors=False)
        return list(await app.history.events(order.run)), clerk


async def test_an_agent_of_a_board_that_repeats_itself_is_told_so() -> None:
    events, clerk = await board_run(guards(then="stop"), lambda task: Order())
    assert hints(clerk.tasks)[:5] == ["", "", "", "inject_variation", ""]
    assert last(events, "run.failed").error == "loop detected"


async def test_work_on_other_things_is_no_loop() -> None:
    clerk = Clerk(lambda task: Parcel(), held=True)
    async with Loom(store="memory") as app:
        board = app.board(guards=guards())
        board.agent("one").consumes(Order).publishes(Parcel).with_engines(clerk)
        numbers = [Order(number=n) for n in range(5)]
        (run,) = {each.run for each in await board.publish_many(numbers, correlation_id="c")}
        clerk.release.set()
        await board.run_until_idle(SOON)
        assert run
        assert not every(await app.history.events(run), "loop.detected")


async def test_a_board_falls_back_from_rotation_to_a_hint_and_says_so() -> None:
    detection = guards(then="stop", strategies={"exact_repetition": "rotate_agent"})
    events, _ = await board_run(detection, lambda task: Order())
    found = every(events, "loop.detected")[0]
    assert (found.strategy, found.instead_of) == ("inject_variation", "rotate_agent")


async def test_a_board_asks_a_person_and_takes_no_turn_meanwhile() -> None:
    detection = guards(strategies={"exact_repetition": "escalate"})
    events, clerk = await board_run(detection, lambda task: Order())
    assert len(clerk.tasks) == 3
    assert only(events, "question.asked").tool == "loop_detection"
    assert events[-1].kind == "run.paused"
    events, clerk = await board_run(detection, lambda task: Order(), "Pack it.", "stop")
    assert ["Pack it." in task.system for task in clerk.tasks] == [False] * 3 + [True, False, False]
    assert last(events, "run.failed").error == "loop detected"
