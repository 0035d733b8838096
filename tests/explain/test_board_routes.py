"""Where the work went on a board: every verdict with its reason, and what completed a set."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.explain.shop import (
    CARD,
    Order,
    Parcel,
    Payment,
    Shop,
    engine,
    offer,
    seqs,
    shop,
    taking,
)
from turnloom.board.spec import After, Private, Public
from turnloom.errors import UsageError
from turnloom.explain.logic.reaction import explain_reaction
from turnloom.explain.spec.reaction import ConsumptionExplained, OfferExplained
from turnloom.explain.spec.variable import VariableExplained
from turnloom.reaction.spec import Batch, Join

FAR = datetime(2500, 1, 1, tzinfo=UTC)


def silent(task: Any) -> str:
    return ""


def says_all(order: Order) -> bool:
    raise ValueError(f"what a card: {order.card}")


def hushed(found: OfferExplained | ConsumptionExplained) -> str:
    """The explanation as text, after a look for what is nobody's business."""
    for told in (str(found), msgspec.json.encode(found).decode()):
        assert CARD not in told and "4000" not in told
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
    return str(found)


async def test_every_subscription_says_why_the_artifact_is_or_is_not_for_it() -> None:
    async with shop(engine(silent)) as here:
        board = here.board
        board.agent("plain").consumes(Order).publishes(Order)
        board.agent("picky").consumes(Order, where=lambda order: order.item == "boat")
        board.agent("broken").consumes(Order, where=says_all)
        board.agent("inner").consumes(Order, from_agents="plain")
        board.agent("tagged").consumes(Order, tags={"gift"})
        board.agent("pair").consumes(Order, Payment)
        board.agent("many").consumes(Order, batch=Batch(9))
        order = await board.publish(Order(item="hat"), tags={"red"})
        await here.settle()
        events = await here.events(order.run)
    (offered,) = seqs(events, "artifact.offered")
    found = offer(events, offered)
    assert {each.subscription: each.what for each in found.to} == {
        "plain#1": "taken into turn 1",
        "picky#1": "no: condition 1 does not hold",
        "broken#1": "no: condition 1 failed: ValueError",
        "inner#1": "no: it takes what others make, made by user",
        "tagged#1": "no: it takes what is tagged otherwise, tagged red",
        "pair#1": "taken, and waits",
        "many#1": "brought to the run that collects for it",
    }
    assert (found.artifact.id, found.artifact.produced_by) == (order.id, "user")
    text = hushed(found)
    assert text.startswith(f"Artifact {order.id} offered at seq {offered}, run {order.run}")
    assert "picky#1   no: condition 1 does not hold" in text


async def test_what_an_agent_may_not_see_or_made_itself_does_not_wake_it() -> None:
    async with shop(engine(lambda task: Order(item="more"))) as here:
        board = here.board
        board.agent("echo").consumes(Order).publishes(Order)
        board.agent("blind").consumes(Order)
        board.agent("early").consumes(Order)
        secret = await board.publish(Order(item="hat"), visibility=Private({"echo"}))
        await here.settle()
        events = await here.events(secret.run)
        hidden = After(FAR, Public())
        later = await board.publish(Order(item="cap"), visibility=hidden)
        await here.settle()
        waiting = await here.events(later.run)
    first, second = (offer(events, seq) for seq in seqs(events, "artifact.offered")[:2])
    assert [each.says for each in first.to] == [
        "echo#1: taken into turn 1",
        "blind#1: no: its agent may not see it",
        "early#1: no: its agent may not see it",
    ]
    assert second.to[0].says == "echo#1: no: its agent made it, and does not wake itself"
    (found,) = (offer(waiting, seq) for seq in seqs(waiting, "artifact.offered"))
    assert {each.what for each in found.to} == {"not to be seen yet"}
    assert all(each.opens == FAR and " (from 2" in each.says for each in found.to)
    hushed(first), hushed(found)


async def test_what_opens_is_offered_again_and_says_so() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("early").consumes(Order)
        now = (await here.board.publish(Payment(number=1))).created_at
        soon = now + timedelta(milliseconds=50)
        order = await here.board.publish(Order(item="cap"), visibility=After(soon, Public()))

        async def is_over() -> bool:
            return (await here.events(order.run))[-1].kind == "run.finished"

        await here.board.run_until(is_over, 20)
        events = await here.events(order.run)
    first, again = (offer(events, seq) for seq in seqs(events, "artifact.offered"))
    (opened,) = seqs(events, "artifact.opened")
    assert [each.what for each in first.to] == [
        f"not to be seen yet; offered again after seq {opened}"
    ]
    assert [each.what for each in again.to] == ["taken into turn 1"]
    assert offer(events, seqs(events, "artifact.published")[0]) == msgspec.structs.replace(
        first, asked=seqs(events, "artifact.published")[0]
    )


async def collected(here: Shop) -> tuple[str, ...]:
    """The runs that collect, in the order they began."""
    found = {run: (await here.events(run))[0].data for run in await here.runs()}
    return tuple(run for run, fact in found.items() if fact.collects)


async def test_the_run_that_collects_says_why_something_cannot_be_joined() -> None:
    def card(value: Any) -> str:
        raise KeyError(value.card)

    async with shop(engine(silent)) as here:
        here.board.agent("bank").consumes(Order, Payment, join=Join("number"))
        here.board.agent("spy").consumes(Payment, Payment, join=Join(card))
        await here.board.publish(Order(item="hat"))
        await here.board.publish(Payment(number=1))
        await here.settle()
        logs = [await here.events(run) for run in await collected(here)]
    by = {log[0].data.collects: log for log in logs}
    orders, payments = (offer(by["bank#1"], seq) for seq in seqs(by["bank#1"], "artifact.offered"))
    assert [each.what for each in orders.to] == ["no: there is no key to join it by"]
    assert [each.what for each in payments.to] == ["taken, and waits"]
    (found,) = (offer(by["spy#1"], seq) for seq in seqs(by["spy#1"], "artifact.offered"))
    assert [each.what for each in found.to] == [
        "no: the key to join it by could not be had, KeyError"
    ]
    hushed(found)


async def test_an_artifact_that_nobody_subscribes_to_says_so() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("plain").consumes(Order)
        order = await here.board.publish(Payment(number=1))
        await here.settle()
        events = await here.events(order.run)
    (published,) = seqs(events, "artifact.published")
    found = offer(events, published)
    assert not found.offered and found.to == () and found.seq == published
    assert "none takes shop.Payment here" in hushed(found)
    with pytest.raises(UsageError, match="1"):
        explain_reaction(events, 1)


async def test_a_gate_says_what_completed_it_and_what_waited() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("pair").consumes(Order, Payment)
        order = await here.board.publish(Order(item="hat"), correlation_id="c")
        payment = await here.board.publish(Payment(number=1), correlation_id="c")
        await here.settle()
        events = await here.events(order.run)
    (consumed,) = seqs(events, "artifact.consumed")
    first, last = seqs(events, "artifact.offered")
    found = taking(events, consumed)
    assert [(each.artifact.id, each.seq) for each in found.artifacts] == [
        (order.id, first),
        (payment.id, last),
    ]
    assert (found.cause, found.because) == (last, f"{payment.id} completed the set")
    assert (found.agent, found.subscription, found.turn) == ("pair", "pair#1", 1)
    assert f"At seq {consumed}, pair#1 took 2 artifacts into turn 1 of pair" in hushed(found)
    with pytest.raises(UsageError, match=f"{first}, {last}, {consumed}"):
        explain_reaction(events, len(events))
    assert "nothing was offered or taken; the next time after it" in str(offer(events, 1))


async def test_sets_say_how_they_were_closed_and_the_runs_they_get_name_their_parents() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("two").consumes(Order, batch=Batch(2))
        here.board.agent("rest").consumes(Payment, batch=Batch(9))
        orders = [await here.board.publish(Order(item=each)) for each in ("hat", "cap")]
        await here.board.publish(Payment(number=1))
        await here.settle()
        await here.board.close(20)
        logs = {run: await here.events(run) for run in await here.runs()}
        explained = {run: str(await here.app.explain(run)) for run in logs}
    by = {log[0].data.collects: log for log in logs.values()}
    full, rest = by["two#1"], by["rest#1"]
    found = taking(full, seqs(full, "artifact.consumed")[0])
    assert found.because == f"{orders[1].id} completed the set" and found.opened in logs
    closed = taking(rest, seqs(rest, "artifact.consumed")[0])
    assert closed.because == "the batch of rest#1 closed: the board was closed"
    assert closed.cause in seqs(rest, "batch.closed")
    own = logs[found.opened]
    given = taking(own, seqs(own, "artifact.consumed")[0])
    assert given.because == f"the set was collected in run {full[0].run}"
    runs = ", ".join(str(each.run) for each in orders)
    assert (
        f"Parents: collected in run {full[0].run}, of artifacts from {runs}"
        in (explained[found.opened])
    )
    assert "Collects for two#1" in explained[full[0].run]
    hushed(found), hushed(given)


async def test_what_is_given_directly_or_tried_again_says_so() -> None:
    left = [ValueError("not today")]

    def answer(task: Any) -> Any:
        if left:
            raise left.pop()
        return Parcel(label="x")

    async with shop(engine(answer)) as here:
        here.board.agent("packer").consumes(Order).publishes(Parcel)
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        await here.board.retry(order)
        await here.settle()
        events = await here.events(order.run)
        await here.board.invoke("packer", Order(item="cap"))
        (run,) = set(await here.runs()) - {order.run}
        direct = await here.events(run)
    again = taking(events, seqs(events, "artifact.consumed")[1])
    assert again.because == "local wanted turn 1 taken again"
    assert again.cause in seqs(events, "retry.asked")
    found = taking(direct, seqs(direct, "artifact.consumed")[0])
    assert found.because == "somebody gave it to the agent directly"
    assert "packer took 1 artifact into turn 1 of packer" in hushed(found)


async def test_what_waited_too_long_for_others_says_so() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("bank").consumes(Order, Payment, join=Join("number", within=1))
        lone = await here.board.publish(Order(item="hat", number=1))
        await here.settle()
        for number in (2, 3):
            await here.board.publish(Order(item="cap", number=number))
            await here.settle()
        (run,) = await collected(here)
        events = await here.events(run)
    assert seqs(events, "join.expired")
    found = offer(events, seqs(events, "artifact.received")[0])
    assert found.artifact.id == lone.id
    assert [each.what for each in found.to] == ["taken, and waited too long for others"]


async def test_causes_go_back_to_what_was_published() -> None:
    variables = {
        "definitions": {
            "packed": {
                "type": "boolean",
                "source": {
                    "type": "derived",
                    "default": False,
                    "triggers": [
                        {"type": "agent_text", "agent": "b", "match": {"contains": "done"}}
                    ],
                },
            }
        },
        "agents": {"b": {"variables": ["packed"]}},
    }
    async with shop(engine(silent)) as here:
        board = here.app.board("other", variables=variables)
        board.agent("a").consumes(Order).publishes(Parcel).with_engines(
            engine(lambda task: Parcel(label="x"))
        )
        board.agent("b").consumes(Parcel).with_engines(engine(lambda task: "done"))
        order = await board.publish(Order(item="hat"))
        await board.run_until_idle(20)
        found = await here.app.explain(order.run or "", variable="packed")
    assert isinstance(found, VariableExplained)
    chain = [each.kind for each in found.changes[0].causes]
    assert chain[:7] == [
        "agent.text",
        "model.answered",
        "model.called",
        "frame.assembled",
        "context.gathered",
        "turn.started",
        "artifact.consumed",
    ]
    assert chain[7:9] == ["artifact.offered", "artifact.published"]
    assert chain[-3:] == ["artifact.consumed", "artifact.offered", "artifact.published"]
