"""Where the work went on a board: every verdict with its reason, and what completed a set."""

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import msgspec
import pytest

from tests.explain.conftest import tells
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
from turnloom.board.spec import After, Artifact, Private, Public
from turnloom.errors import UsageError
from turnloom.explain.logic.route import explain_reaction
from turnloom.explain.spec.board import ConsumptionExplained, OfferExplained
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
    told = {each.subscription: each.what for each in found.to}
    names = {"picky#1": "1", "broken#1": "ValueError", "inner#1": "user", "tagged#1": "red"}
    assert told.keys() == {"plain#1", "pair#1", "many#1", *names}
    assert len({*told.values()}) == len(told)
    assert all(told[name].startswith("no: ") == (name in names) for name in told)
    assert all(value in told[name] for name, value in names.items())
    assert (found.artifact.id, found.artifact.produced_by) == (order.id, "user")
    text = hushed(found)
    assert tells(text, order.id, offered, order.run, "picky#1", told["picky#1"])


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
    assert [(each.subscription, each.what.startswith("no: ")) for each in first.to] == [
        ("echo#1", False),
        ("blind#1", True),
        ("early#1", True),
    ]
    itself, hidden = second.to[0].what, first.to[1].what
    assert itself.startswith("no: ") and itself != hidden == first.to[2].what
    (found,) = (offer(waiting, seq) for seq in seqs(waiting, "artifact.offered"))
    assert len({each.what for each in found.to}) == 1
    assert all(each.opens == FAR and tells(each.says, "(from 2") for each in found.to)
    hushed(first), hushed(found)


async def test_what_opens_is_offered_again_and_says_so() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("early").consumes(Order)
        for seconds in (0.05, 1, 10):  # a busy machine may be late for the first ones
            now = (await here.board.publish(Payment(number=1))).created_at
            soon = now + timedelta(seconds=seconds)
            order = await here.board.publish(Order(item="cap"), visibility=After(soon, Public()))
            events = await here.events(order.run)
            while events[-1].kind != "run.finished":
                await anyio.sleep(0.01)
                events = await here.events(order.run)
            if seqs(events, "artifact.opened"):
                break
    first, again = (offer(events, seq) for seq in seqs(events, "artifact.offered"))
    (opened,) = seqs(events, "artifact.opened")
    assert [tells(each.what, opened) for each in first.to] == [True]
    assert [tells(each.what, "turn 1") for each in again.to] == [True]
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
        await here.settle()  # it is collected first
        await here.board.publish(Payment(number=1))
        await here.settle()
        logs = [await here.events(run) for run in await collected(here)]
    by = {log[0].data.collects: log for log in logs}
    orders, payments = (offer(by["bank#1"], seq) for seq in seqs(by["bank#1"], "artifact.offered"))
    assert [each.what.startswith("no: ") for each in (*orders.to, *payments.to)] == [True, False]
    (found,) = (offer(by["spy#1"], seq) for seq in seqs(by["spy#1"], "artifact.offered"))
    assert [tells(each.what, "no: ", "KeyError") for each in found.to] == [True]
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
    assert tells(hushed(found), "shop.Payment")
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
    assert found.cause == last and tells(found.because, payment.id)
    assert (found.agent, found.subscription, found.turn) == ("pair", "pair#1", 1)
    assert tells(hushed(found), consumed, "pair#1", "2", "turn 1", "pair")
    with pytest.raises(UsageError, match=f"{first}, {last}, {consumed}"):
        explain_reaction(events, len(events))
    assert offer(events, 1).asked == 1 and tells(str(offer(events, 1)), 1)


async def test_sets_say_how_they_were_closed_and_the_runs_they_get_name_their_parents() -> None:
    async with shop(engine(silent)) as here:
        here.board.agent("two").consumes(Order, batch=Batch(2))
        here.board.agent("rest").consumes(Payment, batch=Batch(9))
        orders: list[Artifact] = []
        for item in ("hat", "cap"):
            orders.append(await here.board.publish(Order(item=item)))
            await here.settle()  # it is collected before the next
        await here.board.publish(Payment(number=1))
        await here.settle()
        await here.board.close(20)
        logs = {run: await here.events(run) for run in await here.runs()}
        explained = {run: str(await here.app.explain.timeline(run)) for run in logs}
    by = {log[0].data.collects: log for log in logs.values()}
    full, rest = by["two#1"], by["rest#1"]
    found = taking(full, seqs(full, "artifact.consumed")[0])
    assert tells(found.because, orders[1].id) and found.opened in logs
    closed = taking(rest, seqs(rest, "artifact.consumed")[0])
    assert tells(closed.because, "rest#1")
    assert closed.cause in seqs(rest, "batch.closed")
    own = logs[found.opened]
    given = taking(own, seqs(own, "artifact.consumed")[0])
    assert tells(given.because, full[0].run)
    assert tells(explained[found.opened], full[0].run, *(each.run for each in orders))
    assert tells(explained[full[0].run], "two#1")
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
    assert tells(again.because, "local", "turn 1")
    assert again.cause in seqs(events, "retry.asked")
    found = taking(direct, seqs(direct, "artifact.consumed")[0])
    assert found.because != again.because
    assert tells(hushed(found), "packer", "1", "turn 1", "packer")


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
    (waited,) = found.to
    assert not waited.what.startswith("no: ")


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
        found = await here.app.explain.variable(order.run or "", "packed")
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
