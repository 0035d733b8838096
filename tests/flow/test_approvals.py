"""Decisions of people that runs wait for."""

import asyncio
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any

import pytest

from tests.flow.scenes import SOON, Sees, Work, facts, failing, flow_of, note, play, taken
from tests.support.timed import Timed
from turnloom import (
    Delivery,
    Flow,
    Loom,
    NotYours,
    Option,
    Outcome,
    Path,
    QuestionExpired,
    Run,
    UsageError,
    complete,
    escalate_to,
)


def approving(**more: Any) -> Flow[Work]:
    flow = Flow("work", Work).start_with(note("draft"))
    return flow.await_approval("boss", **more).finally_(note("publish"))


async def decide(run: Run, answer: Any) -> Outcome:
    """What becomes of a run when its question is answered."""
    async with asyncio.timeout(SOON):
        waiting = await run.outcome()
        assert waiting.status == "waiting" and waiting.question is not None
        await run.answer(waiting.question.id, answer, user_id=waiting.question.to)
        return await run.outcome()


async def test_an_approval_shows_its_context_and_options_and_waits(app: Loom) -> None:
    options = [
        Option("approve", "Publish it", "It goes out today."),
        "later",
        Option("drop", rejects=True),
    ]
    flow = approving(context=lambda state: f"{len(state.notes)} draft", options=options)
    waiting = await app.run(flow)
    assert waiting.status == "waiting" and waiting.state.notes == ["draft"]
    question = waiting.question
    assert question is not None
    assert (question.prompt, question.to, question.tool) == ("1 draft", "boss", "approval")
    shown: Any = question.payload
    assert [(each["id"], each["label"], each["description"]) for each in shown["options"]] == [
        ("approve", "Publish it", "It goes out today."),
        ("later", "later", ""),
        ("drop", "drop", ""),
    ]


async def test_half_characters_in_what_is_asked_are_spelled_out(app: Loom) -> None:
    waiting = await app.run(approving(context=lambda state: "half \ud800"))
    assert waiting.question is not None and waiting.question.prompt == r"half \ud800"


async def test_who_approves_lets_the_flow_go_on_and_may_say_more(app: Loom) -> None:
    step = Sees()
    flow = Flow("work", Work).start_with(note("draft")).await_approval("boss").finally_(step)
    run = await app.start(flow, user_id="ada")
    outcome = await decide(run, {"decision": "approve", "instructions": "shorter, please"})
    assert outcome.status == "finished" and outcome.question is None
    decided = step.contexts[0].approvals["approval"]
    assert (decided.approver, decided.outcome, decided.option) == ("boss", "approved", "approve")
    assert (decided.instructions, decided.by) == ("shorter, please", "boss")


async def test_only_the_approver_decides(timed: Timed) -> None:
    """Not who asked for it, named or not; and not who was asked before, once time passed it on."""
    run = await timed.start(approving(timeout=60, on_timeout=escalate_to("chief")), user_id="ada")
    await run.outcome()
    for user in (None, "ada", "chief"):
        with pytest.raises(NotYours):
            await run.answer(None, "approve", user_id=user)
    await late(timed, run, 61)
    for user in (None, "ada", "boss"):
        with pytest.raises(NotYours):
            await run.answer(None, "approve", user_id=user)
    assert not await facts(timed, run.id, "question.answered")
    await run.answer(None, "approve", user_id="chief")
    assert (await run.outcome()).status == "finished"
    decided = (await facts(timed, run.id, "approval.decided"))[-1]
    assert (decided.approver, decided.by) == ("chief", "chief")
    assert await run.answer("approval/approval#2", "reject", user_id="chief") is Delivery.REPEATED


async def test_a_word_is_enough(app: Loom) -> None:
    run = await app.start(approving())
    assert (await decide(run, "approve")).state.notes == ["draft", "publish"]


async def test_who_rejects_leads_to_the_path_for_that(app: Loom) -> None:
    run = await app.start(approving(on_rejection=[note("rewrite")]))
    assert (await decide(run, "reject")).state.notes == ["draft", "rewrite", "publish"]
    run = await app.start(approving(on_rejection=[note("drop"), complete()]))
    assert (await decide(run, "reject")).state.notes == ["draft", "drop"]


async def test_a_rejection_without_a_path_fails_the_flow(app: Loom) -> None:
    run = await app.start(approving())
    outcome = await decide(run, {"decision": "reject", "instructions": "too long"})
    assert outcome.status == "failed" and outcome.failure is not None
    assert outcome.failure.error == "ApprovalRejected"
    assert "'boss'" in outcome.failure.message and "too long" in outcome.failure.message


async def test_an_option_of_ones_own_approves_or_rejects_as_it_says(app: Loom) -> None:
    options = ["red", "blue", Option("neither", rejects=True)]
    step = Sees()
    flow = Flow("work", Work).start_with(note("a")).await_approval("boss", options=options)
    flow.then(step)
    outcome = await decide(await app.start(flow), "blue")
    assert outcome.status == "finished" and step.contexts[0].approvals["approval"].option == "blue"
    assert (await decide(await app.start(flow), "neither")).status == "failed"


async def test_who_asks_for_time_is_asked_again(app: Loom) -> None:
    run = await app.start(approving())
    first = await run.outcome()
    waiting = await decide(run, "defer")
    assert waiting.status == "waiting" and first.question is not None
    assert waiting.question is not None and waiting.question.id != first.question.id
    assert (await decide(run, "approve")).status == "finished"
    decided = await facts(app, run.id, "approval.decided")
    assert [each.outcome for each in decided] == ["deferred", "approved"]


async def test_what_is_no_option_is_refused(app: Loom) -> None:
    run = await app.start(approving())
    waiting = await run.outcome()
    assert waiting.question is not None
    for answer in ("perhaps", {"decision": "perhaps"}, {"instructions": "go"}, 1):
        with pytest.raises(UsageError) as refused:
            await run.answer(waiting.question.id, answer, user_id="boss")
        assert repr(waiting.question.id) in str(refused.value)
    assert not await facts(app, run.id, "question.answered")


# ------------------------------------------------------------------ time


async def late(app: Timed, run: Run, seconds: float) -> Outcome:
    """What becomes of a run whose question nobody answers."""
    async with asyncio.timeout(SOON):
        await run.outcome()
        app.clock.advance(timedelta(seconds=seconds))
        await app.resume(run.id)
        return await run.outcome()


async def test_nobody_answering_leads_to_the_path_for_that(timed: Timed) -> None:
    run = await timed.start(approving(timeout=60, on_timeout=[note("remind"), complete()]))
    outcome = await late(timed, run, 61)
    assert outcome.status == "finished" and outcome.state.notes == ["draft", "remind"]


async def test_nobody_answering_fails_the_flow_without_such_a_path(timed: Timed) -> None:
    run = await timed.start(approving(timeout=60))
    outcome = await late(timed, run, 61)
    assert outcome.status == "failed" and outcome.failure is not None
    assert outcome.failure.error == "ApprovalExpired"


async def test_an_approval_is_passed_on_from_one_to_the_next(timed: Timed) -> None:
    last = escalate_to("board", timeout=20, on_timeout=[note("give_up"), complete()])
    chain = escalate_to("chief", context="The boss is away.", timeout=10, on_timeout=last)
    run = await timed.start(approving(timeout=60, on_timeout=chain))
    second = await late(timed, run, 61)
    assert second.question is not None
    assert (second.question.to, second.question.prompt) == ("chief", "The boss is away.")
    third = await late(timed, run, 11)
    assert third.question is not None and third.question.to == "board"
    assert (await late(timed, run, 21)).state.notes == ["draft", "give_up"]
    decided = await facts(timed, run.id, "approval.decided")
    assert [(each.approver, each.outcome, each.to) for each in decided] == [
        ("boss", "expired", "chief"),
        ("chief", "expired", "board"),
        ("board", "expired", ""),
    ]


async def test_who_is_asked_next_is_asked_the_same_unless_it_says_otherwise(timed: Timed) -> None:
    last = escalate_to("board", options=["yes", Option("no", rejects=True)])
    chief = escalate_to("chief", timeout=10, on_timeout=last)
    options = ["red", Option("neither", rejects=True)]
    flow = approving(
        context=lambda state: f"Which, {len(state.notes)}?",
        options=options,
        timeout=60,
        on_timeout=chief,
    )
    run = await timed.start(flow)
    first = (await run.outcome()).question
    second = (await late(timed, run, 61)).question
    third = (await late(timed, run, 11)).question
    assert first is not None and second is not None and third is not None
    asked = [(each.to, each.prompt, shown(each)) for each in (first, second, third)]
    assert asked == [
        ("boss", "Which, 1?", ["red", "neither"]),
        ("chief", "Which, 1?", ["red", "neither"]),
        ("board", "Which, 1?", ["yes", "no"]),
    ]
    assert (await decide(run, "no")).status == "failed"


def shown(question: Any) -> list[str]:
    """The options that a question shows."""
    return [each["id"] for each in question.payload["options"]]


async def test_whoever_it_was_passed_on_to_decides(timed: Timed) -> None:
    chief = escalate_to("chief", options=["fine", Option("never", rejects=True)])
    run = await timed.start(approving(timeout=60, on_timeout=chief))
    await late(timed, run, 61)
    assert (await decide(run, "fine")).state.notes == ["draft", "publish"]


async def test_an_answer_that_comes_too_late_changes_nothing(timed: Timed) -> None:
    run = await timed.start(approving(timeout=60, on_timeout=[note("remind"), complete()]))
    waiting = await run.outcome()
    assert waiting.question is not None
    timed.clock.advance(timedelta(seconds=61))
    with pytest.raises(QuestionExpired):
        await run.answer(waiting.question.id, "approve", user_id="boss")
    assert (await run.outcome()).state.notes == ["draft", "remind"]


async def test_time_that_is_over_after_the_decision_changes_nothing(timed: Timed) -> None:
    flow = (
        Flow("work", Work)
        .start_with(note("draft"))
        .await_approval("boss", timeout=60, on_timeout=[note("remind"), complete()])
        .await_approval("press")
        .finally_(note("publish"))
    )
    run = await timed.start(flow)
    await decide(run, "approve")
    timed.clock.advance(timedelta(seconds=61))
    await timed.resume(run.id)
    assert (await decide(run, "approve")).state.notes == ["draft", "publish"]


async def test_who_asks_for_time_gets_none_beyond_the_end(timed: Timed) -> None:
    run = await timed.start(approving(timeout=60, on_timeout=[note("remind"), complete()]))
    timed.clock.advance(timedelta(seconds=0))
    await decide(run, "defer")
    assert (await late(timed, run, 61)).state.notes == ["draft", "remind"]


# ------------------------------------------------------------------ around


async def test_an_approval_survives_a_restart(tmp_path: FilePath) -> None:
    store, flow = str(tmp_path / "turnloom.db"), approving()
    async with Loom(store=store) as app:
        waiting = await app.run(flow)
    async with Loom(store=store) as app:
        app.register_flow(flow)
        run = await app.resume(waiting.run_id)
        assert (await decide(run, "approve")).state.notes == ["draft", "publish"]
        assert await taken(app, run.id) == ["draft", "publish"]


async def test_paths_of_a_fork_ask_at_once(timed: Timed) -> None:
    first = Path().await_approval("ann", name="first", timeout=60).then(note("a"))
    second = Path().await_approval("bob", name="second", timeout=600).then(note("b"))
    flow = flow_of(note("begin")).fork(first, second, join=note("join"))
    run = await timed.start(flow)
    waiting = await run.outcome()
    ann, bob = waiting.questions
    assert waiting.question == ann and (ann.to, bob.to) == ("ann", "bob")
    assert ann.due is not None and bob.due is not None
    assert (bob.due - ann.due).total_seconds() == 540
    assert await run.questions(user_id="bob") == [bob]
    await run.answer(None, "approve", user_id="bob")
    waiting = await run.outcome()
    assert waiting.questions == (ann,)
    assert await taken(timed, run.id) == ["begin", "fork.1/b"]
    await run.answer(ann.id, "approve", user_id="ann")
    assert (await run.outcome()).state.notes == ["begin", "a", "b", "join"]


async def test_of_two_approvals_one_expires_and_the_other_is_given(timed: Timed) -> None:
    hasty = Path().await_approval("ann", timeout=60, on_timeout=Path(note("late")))
    patient = Path().await_approval("bob", name="second").then(note("b"))
    flow = flow_of(note("begin")).fork(hasty, patient, join=note("join"))
    run = await timed.start(flow)
    assert len((await run.outcome()).questions) == 2
    waiting = await late(timed, run, 61)
    assert [each.to for each in waiting.questions] == ["bob"]
    outcome = await decide(run, "approve")
    assert outcome.state.notes == ["begin", "late", "b", "join"]


async def test_what_a_rejection_leads_to_may_fail(app: Loom) -> None:
    run = await app.start(approving(on_rejection=[failing("rewrite")]))
    outcome = await decide(run, "reject")
    assert outcome.status == "failed" and outcome.failure is not None
    assert outcome.failure.step == "rewrite"


async def test_a_rejection_is_made_up_for(app: Loom) -> None:
    flow = (
        Flow("work", Work)
        .start_with(note("draft"), compensate=note("shred"))
        .await_approval("boss")
        .on_failure(note("tell"))
    )
    run = await app.start(flow)
    assert (await decide(run, "reject")).state.notes == ["draft", "shred", "tell"]


async def test_a_run_that_waits_can_be_cancelled(app: Loom) -> None:
    flow = Flow("work", Work).start_with(note("draft"), compensate=note("shred"))
    run = await app.start(flow.await_approval("boss"))
    await run.outcome()
    assert await run.cancel()
    outcome = await run.outcome()
    assert outcome.status == "cancelled" and outcome.state.notes == ["draft", "shred"]


async def test_context_that_cannot_be_said_fails_the_flow(app: Loom) -> None:
    outcome = await play(app, approving(context=lambda state: 1 / 0))
    assert outcome.failure is not None and outcome.failure.error == "ZeroDivisionError"


@pytest.mark.parametrize("asking", [{"context": lambda invoice: invoice.colour}, {}])
async def test_what_failed_of_an_approval_is_told(app: Loom, asking: Any) -> None:
    flow = flow_of(note("a")).await_approval("boss", name="release", **asking)
    outcome = await play(app, flow.finally_(note("end")))
    if outcome.question is not None:
        run = app.handle(outcome.run_id)
        await run.answer(None, "reject", user_id="boss")
        outcome = await run.outcome()
    assert outcome.failure is not None and "'release'" in outcome.failure.what
    assert ("context" in outcome.failure.what) == bool(asking)
    assert outcome.failure.what in (await app.history.events(outcome.run_id))[-1].data.error
