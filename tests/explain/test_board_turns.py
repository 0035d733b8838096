"""Turns on a board: why they were taken, what they were shown to the byte, what they published."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.explain.conftest import tells
from tests.explain.shop import Order, Parcel, Payment, Shop, clerk, engine, pack, seqs, shop, turn
from tests.explain.test_turn import altered
from turnloom import Answer, Event, Task, ToolCall
from turnloom.assembly.service.providers import (
    CompositeProvider,
    DefaultCorrelationProvider,
    FilteredContextProvider,
    RedactingProvider,
)
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.board.spec import FilterConfig, Private
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.spec.board import (
    ArtifactEntry,
    ChoiceEntry,
    ContextEntry,
    FailedProviderEntry,
)
from turnloom.explain.spec.steps import ModelCallEntry, ToolEntry
from turnloom.explain.spec.turn import TurnExplained

PAID = FilterConfig(types={"Payment"})


def of(found: TurnExplained, kind: type[Any]) -> list[Any]:
    return [step for step in found.steps if isinstance(step, kind)]


def same_bytes(found: TurnExplained, task: Task) -> None:
    """No byte of what the engine was given is without an origin, and none was added."""
    assert found.prompt.encode() == task.prompt.encode()
    assert "".join(each.text for each in found.segments) == found.prompt
    assert sum(each.tokens for each in found.segments) == found.tokens
    assert all(each.origin and each.reason for each in found.segments)


async def ordered(here: Shop, *, redacted: bool = True) -> tuple[list[Event], list[Task], Any]:
    """A parcel that was packed with payments in view, without cards."""
    inner = CompositeProvider(FilteredContextProvider(PAID), DefaultCorrelationProvider())
    provider = RedactingProvider(inner, keys=["card"]) if redacted else inner
    packer = engine()
    board = here.board
    board.agent("packer").description("Pack. ☕").consumes(Order).publishes(
        Parcel, tags={"out"}
    ).with_context(provider).with_engines(packer)
    await board.publish(Payment(number=1))
    await board.publish(Payment(number=2))
    await here.settle()
    order = await board.publish(Order(item="hat"))
    await here.settle()
    return await here.events(order.run), clerk(packer).tasks, order


async def test_what_is_explained_is_what_the_engine_got_to_the_byte() -> None:
    async with shop() as here:
        events, (task,), order = await ordered(here)
    found = turn(events)
    same_bytes(found, task)
    path = "RedactingProvider/CompositeProvider/FilteredContextProvider"
    first, second = (item["artifact_id"] for item in task.context.items)
    assert [(each.kind, each.origin) for each in found.segments] == [
        ("instruction", "agents.packer"),
        ("context", "context"),
        ("artifact", path),
        ("artifact", path),
        ("input", "input"),
        ("input", f"artifact {order.id}"),
        ("output", "structured_outputs.Parcel"),
    ]
    reasons = [each.reason for each in found.segments]
    assert tells(reasons[2], first, "card") and tells(reasons[3], second, "card")
    assert tells(reasons[5], "card")
    assert "4000" not in found.prompt and "☕" in found.prompt
    assert [(each.origin, each.reason, each.detail) for each in found.withheld] == [
        (f"artifact {first}.card", "redacted", path),
        (f"artifact {second}.card", "redacted", path),
        (f"artifact {order.id}.card", "redacted", "RedactingProvider"),
    ]


async def test_a_turn_says_what_woke_it_who_was_asked_and_what_it_published() -> None:
    async with shop() as here:
        here.board.agent("courier").consumes(Parcel, tags={"in"}).with_engines(engine())
        events, _, order = await ordered(here)
    found = turn(events)
    woken = found.woken
    assert woken and woken.subscription == "packer#1"
    assert [woken.seq] == seqs(events, "artifact.consumed")
    (input,) = woken.artifacts
    assert (input.id, input.type, input.produced_by) == (order.id, "shop.Order", "user")
    assert (input.run, input.parents) == (order.run, ())
    (context,) = of(found, ContextEntry)
    assert (context.provider, context.items, context.fallback) == ("RedactingProvider", 2, False)
    assert [(each.provider.rpartition("/")[2], each.items) for each in context.within] == [
        ("RedactingProvider", 2),
        ("CompositeProvider", 2),
        ("FilteredContextProvider", 2),
        ("DefaultCorrelationProvider", 0),
    ]
    assert context.seconds == context.within[0].micros / 1_000_000
    (made,) = of(found, ArtifactEntry)
    assert made.artifact.parents == (order.id,) and made.artifact.run == order.run
    assert [tells(each.says, "courier#1", "no: ", "out") for each in made.within] == [True]
    assert tells(str(found), "packer#1", woken.seq, "1 artifact")
    assert tells(str(found), "shop.Parcel", made.artifact.id, order.id)


async def test_what_was_gathered_and_what_was_given_are_checked_against_the_frame() -> None:
    async with shop() as here:
        events, _, order = await ordered(here)
    (gathered,) = seqs(events, "context.gathered")
    fact = events[gathered - 1].data
    dropped = altered(events, gathered, items=fact.items[:1])
    first = msgspec.structs.replace(fact.items[0], text='\n{"forged":1}')
    forged = altered(events, gathered, items=(first, *fact.items[1:]))
    for log, says in (
        (dropped, "segment 4 ("),
        (forged, "segment 3 (RedactingProvider/CompositeProvider/FilteredContextProvider)"),
    ):
        found = explain_turn(log, 1)
        assert not found.verified and any(says in doubt for doubt in found.doubts), found.doubts
    async with shop() as here:
        events, _, order = await ordered(here, redacted=False)
    (published, _) = seqs(events, "artifact.published")
    other = msgspec.structs.replace(order, payload={"item": "boat", "card": "", "number": None})
    found = explain_turn(altered(events, published, artifact=other), 1)
    (doubt,) = found.doubts
    assert tells(doubt, order.id)


async def nobody(request: ContextRequest) -> ContextSlice:
    raise LookupError("the shelf is empty")


async def plain(request: ContextRequest) -> ContextSlice:
    return ContextSlice(items=[{"note": "rain"}])


async def test_a_fallback_and_a_failure_are_told() -> None:
    async with shop(engine()) as here:
        here.board.agent("calm").consumes(Order).publishes(Parcel).with_context(
            nobody, fallback=plain
        )
        here.board.agent("lost").consumes(Payment).with_context(nobody)
        order = await here.board.publish(Order(item="hat"))
        payment = await here.board.publish(Payment(number=1))
        assert await here.settle()
        calm, lost = await here.events(order.run), await here.events(payment.run)
    (context,) = of(turn(calm), ContextEntry)
    assert context.fallback and tells(context.says, "plain", "1 item")
    failed = context.within[0]
    assert isinstance(failed, FailedProviderEntry) and failed.fallback == "plain"
    assert tells(failed.says, "nobody", "LookupError: the shelf is empty", "plain")
    assert [each.kind for each in turn(calm).segments].count("artifact") == 1
    found = explain_turn(lost, 1)
    (context,) = of(found, ContextEntry)
    assert (found.status, context.outcome, found.seq) == ("failed", "failed", 0)
    assert tells(context.says, "nobody") and "LookupError" in found.error


async def test_each_engine_of_a_turn_is_told_with_its_own_frame_and_what_it_was_passed() -> None:
    class Own:
        """An engine with a context of its own."""

        context_provider = staticmethod(plain)

        async def __call__(self, task: Task) -> Any:
            return await inner(task)

    first, inner = engine(lambda task: Parcel(label="draft")), engine()
    async with shop() as here:
        here.board.agent("packer").consumes(Order).publishes(Parcel).with_engines(first, Own())
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        events = await here.events(order.run)
    found = turn(events)
    same_bytes(found, *clerk(first).tasks)
    (task,) = clerk(inner).tasks
    (part,) = found.parts
    assert part.name == "engine 2" and part.frame is not None
    assert part.frame.prompt == task.prompt != found.prompt
    assert part.exchanges == task.exchanges and task.exchanges[0].text == '{"label":"draft"}'
    calls = of(found, ModelCallEntry)
    assert [(each.part, each.n, each.given) for each in calls] == [("", 1, 0), ("engine 2", 1, 1)]
    assert tells(str(found), "engine 2", "rain")
    called = seqs(events, "model.called")[1]
    doubts = explain_turn(altered(events, called, request="00"), 1).doubts
    assert [tells(doubt, "engine 2", "1") for doubt in doubts] == [True]


async def test_engines_that_share_a_context_share_the_frame() -> None:
    async with shop() as here:
        engines = engine(lambda task: Parcel(label="draft")), engine()
        here.board.agent("packer").consumes(Order).publishes(Parcel).with_engines(*engines)
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        found = turn(await here.events(order.run))
    (part,) = found.parts
    assert part.frame is None and part.name == "engine 2"
    assert clerk(engines[1]).tasks[0].prompt == found.prompt


async def test_tries_are_told_one_by_one_and_which_of_them_counts() -> None:
    def weigh(label: str) -> str:
        """The weight of a label."""
        return f"{label}: heavy"

    def answer(task: Task) -> Any:
        number = int(task.key.partition("/s")[2].partition("/")[0])
        if number == 2:
            raise ValueError("no string left")
        if not task.exchanges:
            return Answer(calls=(ToolCall("weigh", {"label": f"{number}"}),))
        return Parcel(label="*" * (number + 1))

    packer = engine(answer)
    async with shop() as here:
        here.board.agent("packer").consumes(Order).publishes(Parcel).with_tools(weigh).with_engines(
            packer
        ).best_of(3, lambda made: len(made.artifacts[0].value.label))
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        found = turn(await here.events(order.run))
    assert [part.name for part in found.parts] == ["try 1", "try 2", "try 3"]
    assert all(part.frame is None for part in found.parts) and found.exchanges == ()
    for task in clerk(packer).tasks:
        assert task.prompt == found.prompt
        part = found.parts[int(task.key.partition("/s")[2].partition("/")[0])]
        assert part.exchanges[: len(task.exchanges)] == task.exchanges
    (chosen,) = of(found, ChoiceEntry)
    assert tells(chosen.says, "try 2", "3", "1, 2, failed")
    assert sorted(each.part for each in of(found, ToolEntry)) == ["try 1", "try 2"]
    assert len(of(found, ArtifactEntry)) == 1


async def test_turns_side_by_side_are_kept_apart() -> None:
    met = asyncio.Barrier(2)

    async def meet(task: Task) -> Parcel:
        await met.wait()
        return pack(task)

    async with shop() as here:
        for name in ("one", "two"):
            agent = here.board.agent(name).consumes(Order).publishes(Parcel)
            agent.with_engines(meet)
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        events = await here.events(order.run)
    assert seqs(events, "turn.started")[1] < seqs(events, "turn.finished")[0]
    for number, name in ((1, "one"), (2, "two")):
        found = turn(events, number)
        assert (found.agent, found.onward) == (name, None)
        assert found.woken and found.woken.subscription == f"{name}#1"
        assert [type(step).__name__ for step in found.steps] == [
            "ContextEntry",
            "ModelCallEntry",
            "ArtifactEntry",
        ]
        (made,) = of(found, ArtifactEntry)
        assert made.artifact.produced_by == name


async def test_a_turn_that_is_tried_again_and_the_one_that_failed_name_each_other() -> None:
    left = [ValueError("no string left")]

    def answer(task: Task) -> Any:
        if left:
            raise left.pop()
        return pack(task)

    async with shop(engine(answer)) as here:
        here.board.agent("packer").consumes(Order).publishes(Parcel)
        order = await here.board.publish(Order(item="hat"))
        assert await here.settle()
        failed = explain_turn(await here.events(order.run), 1)
        assert failed.status == "failed" and failed.onward is None
        assert await here.board.retry(order) == 1
        await here.settle()
        events = await here.events(order.run)
    failed, again = turn(events, 1), turn(events, 2)
    assert failed.onward and (failed.onward.kind, failed.onward.target) == ("retry.asked", "turn 2")
    assert again.woken and again.woken.retry_of == 1 and again.status == "done"
    assert tells(str(again), "turn 1")


async def test_what_is_given_directly_and_not_published_is_told_as_such() -> None:
    async with shop(engine()) as here:
        here.board.agent("packer").publishes(Parcel)
        await here.board.invoke("packer", Order(item="hat"), publish=False)
        (run,) = await here.runs()
        found = turn(await here.events(run))
    assert found.woken and not found.woken.subscription
    (made,) = of(found, ArtifactEntry)
    assert made.made and tells(made.says, "shop.Parcel")


async def test_what_an_agent_may_not_see_is_not_in_its_frame() -> None:
    async with shop(engine()) as here:
        await here.board.publish(Payment(number=7), visibility=Private({"boss"}))
        await here.settle()
        here.board.agent("packer").consumes(Order).publishes(Parcel).with_context_filter(
            filters=PAID
        )
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        found = turn(await here.events(order.run))
    assert "context" not in {each.kind for each in found.segments}
    assert "Payment" not in str(found)


@pytest.mark.parametrize("number", [1, 2])
async def test_the_explanation_is_the_same_after_a_round_trip(number: int) -> None:
    async with shop(engine()) as here:
        here.board.agent("packer").consumes(Order).publishes(Parcel)
        here.board.agent("courier").consumes(Parcel).with_engines(engine(lambda task: "Gone."))
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        found = await here.app.explain.turn(order.run or "", number)
    assert isinstance(found, TurnExplained)
    assert msgspec.json.decode(msgspec.json.encode(found), type=TurnExplained) == found


async def test_the_time_that_providers_took_is_not_that_of_the_model() -> None:
    async def slowly(request: ContextRequest) -> ContextSlice:
        await asyncio.sleep(0.05)
        return ContextSlice(items=[])

    async with shop(engine()) as here:
        here.board.agent("packer").consumes(Order).publishes(Parcel).with_context(slowly)
        order = await here.board.publish(Order(item="hat"))
        await here.settle()
        events = await here.events(order.run)
    at = {event.kind: event.at for event in events}
    assert (at["context.gathered"] - at["turn.started"]).total_seconds() >= 0.05
    assert at["model.called"] >= at["context.gathered"]
    (context,) = of(turn(events), ContextEntry)
    assert context.seconds >= 0.05
