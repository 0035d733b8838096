"""Context that agents of a workflow folder get from the board: declared, gathered, on record."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from tests.support import stage
from tests.support.folders import as_json, write_folder
from tests.support.lives import Lives
from tests.support.logs import essence
from tests.support.plays import every, last, only
from turnloom import Answer, Event, Loom, Run, Task
from turnloom.board.spec import Private, Tenant, Visibility, artifact_type


@artifact_type(name="shop.PitchResult")
class PitchResult(BaseModel):
    tagline: str
    private_notes: str = "Robin pays late."


PROVIDERS = """
    import asyncio
    from tests.support import stage
    from turnloom import (
        ContextRequest, ContextSlice, FilteredContextProvider, RedactingProvider, TranscriptProvider
    )
    from turnloom.board.spec import FilterConfig, TagFilter

    won = FilterConfig(types={"PitchResult"}, tags=TagFilter(include={"deal_won"}))
    recent_wins = RedactingProvider(FilteredContextProvider(won), keys=["private_notes"])
    last_words = TranscriptProvider(last=1)

    class Archive:
        async def __call__(self, request: ContextRequest) -> ContextSlice:
            stage.mark(f"archive {request.ctx.turn}")
            return ContextSlice([{"told": dict(request.config)}], {"shelf": 7})

    async def broken(request):
        raise ConnectionError("the archive is closed")

    async def slow(request):
        await asyncio.sleep(60)

    async def about(request):
        run = request.ctx.run
        return ContextSlice([{
            "agent": request.agent.name,
            "tenant": request.agent.tenant,
            "user": run.user,
            "id": [run.id, request.correlation_id],
            "inputs": len(request.inputs),
        }])
    """


class Shop:
    """An app with a board and a workflow of one agent, and all that the agent was asked."""

    def __init__(self, app: Loom, where: Path, tasks: list[Task]) -> None:
        self.app = app
        self.tasks = tasks
        self.board = app.board()
        self.board.register(PitchResult)
        self._where = where

    async def put(self, tagline: str, *, tags: str = "deal_won", **more: Any) -> str:
        """Publish a result."""
        published = await self.board.publish(PitchResult(tagline=tagline), tags={tags}, **more)
        return published.id

    async def start(self, context: str, code: str = PROVIDERS, **files: str) -> Run:
        """Begin a conversation whose agent has this context."""
        declared = {f"{part}.yaml": text for part, text in files.items()}
        code_files = {"providers.py": code} if code else {}
        folder = write_folder(
            self._where,
            {
                "agents.yaml": f"Closer: {{system_message: Close., context: {context}}}",
                "orchestrator.yaml": "initial_message: The customer hesitates.",
                **code_files,
                **declared,
            },
        )
        return await self.app.start(folder, user_id="u1")

    async def play(self, context: str, code: str = PROVIDERS, **files: str) -> list[Event]:
        """The log of a conversation whose agent has this context."""
        run = await self.start(context, code, **files)
        return [event async for event in run.events()]


@asynccontextmanager
async def opened(where: Path, store: str = "memory") -> AsyncIterator[Shop]:
    tasks: list[Task] = []

    async def engine(task: Task) -> Answer:
        tasks.append(task)
        return Answer(f"{task.agent} {task.turn}.")

    async with Loom(store=store, engine=engine) as app:
        yield Shop(app, where, tasks)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    stage.clear()
    async with opened(tmp_path) as made:
        yield made


def told(task: Task) -> list[tuple[str, str]]:
    return [(message.author, message.text) for message in task.transcript]


def taglines(task: Task) -> list[str]:
    return [item["payload"]["tagline"] for item in task.context.items]


# ------------------------------------------------------------------------ what an agent gets


async def test_an_agent_gets_what_its_provider_finds_on_the_board(shop: Shop) -> None:
    win = await shop.put("On socks")
    await shop.put("On hats", tags="deal_lost")
    events = await shop.play("recent_wins")
    (task,) = shop.tasks
    said, context = told(task)
    assert said == ("workflow", "The customer hesitates.")
    assert context[0] == "user" and context[1].startswith("Context:\n{")
    assert "On socks" in context[1] and "On hats" not in context[1]
    fact = only(events, "context.gathered")
    assert (fact.agent, fact.provider, fact.fallback) == ("Closer", "recent_wins", False)
    (item,) = fact.items
    assert (item.artifact, item.redacted) == (win, ("private_notes",))
    assert item.provider == "recent_wins/FilteredContextProvider"
    kinds = [event.kind for event in events]
    assert kinds.index("context.gathered") < kinds.index("frame.assembled")


async def test_what_is_redacted_is_in_no_prompt_and_in_no_event(shop: Shop) -> None:
    win = await shop.put("On socks")
    events = await shop.play("recent_wins")
    assert "Robin" not in str(shop.tasks) and "Robin" not in shop.tasks[0].prompt
    assert "Robin" not in msgspec.json.encode([each.data for each in events]).decode()
    (withheld,) = last(events, "frame.assembled").withheld
    assert (withheld.origin, withheld.reason) == (f"artifact {win}.private_notes", "redacted")


async def test_a_filter_needs_no_code(shop: Shop) -> None:
    for each in ("On socks", "On hats", "On gloves"):
        await shop.put(each)
    await shop.put("On coats", tags="deal_lost")
    chosen = "{types: [PitchResult], tags: {include: [deal_won]}, limit: 2, order: -created_at}"
    await shop.play(f"{{filter: {chosen}}}", code="")
    assert taglines(shop.tasks[0]) == ["On gloves", "On hats"]


async def test_a_list_is_composed_in_its_order_and_shows_an_artifact_once(shop: Shop) -> None:
    await shop.put("On socks")
    await shop.put("On hats", tags="deal_lost")
    context = "[last_words, recent_wins, {filter: {types: [PitchResult]}}, Archive]"
    events = await shop.play(context)
    fact = only(events, "context.gathered")
    assert [item.provider for item in fact.items] == [
        "context/last_words",
        "context/recent_wins/FilteredContextProvider",
        "context/FilteredContextProvider",
        "context/Archive",
    ]
    assert fact.metadata == {"shelf": 7}


async def test_nothing_declared_asks_nobody_and_says_nothing(shop: Shop) -> None:
    await shop.put("On socks")
    events = await shop.play("[]")
    assert told(shop.tasks[0]) == [("workflow", "The customer hesitates.")]
    assert shop.tasks[0].context.items == []
    assert not every(events, "context.gathered") and not stage.marks


async def test_a_provider_that_finds_nothing_says_nothing(shop: Shop) -> None:
    events = await shop.play("recent_wins")
    assert told(shop.tasks[0]) == [("workflow", "The customer hesitates.")]
    assert only(events, "context.gathered").items == ()


async def test_a_provider_is_told_whom_it_is_asked_for(shop: Shop) -> None:
    run = await shop.start("about")
    await run.finished()
    (item,) = shop.tasks[0].context.items
    assert item == {
        "agent": "Closer",
        "tenant": "local",
        "user": "u1",
        "id": [run.id, run.id],
        "inputs": 0,
    }


async def test_every_turn_is_given_its_own(shop: Shop) -> None:
    rounds = "orchestration_pattern: RoundRobinPattern\nmax_turns: 3"
    await shop.play("Archive", orchestrator=rounds)
    assert stage.marks == ["archive 1", "archive 2", "archive 3"]


async def test_explain_shows_what_was_sent_and_where_it_is_from(shop: Shop) -> None:
    win = await shop.put("On socks")
    context = "[{provider: broken, fallback: nothing}, recent_wins, transcript]"
    run = await shop.start(context)
    await run.finished()
    told = await shop.app.explain.turn(run.id, 1)
    assert told.prompt == shop.tasks[0].prompt
    text = str(told)
    assert told.verified
    assert win in text and "ConnectionError: the archive is closed" in text


# ------------------------------------------------------------------------ what goes wrong


async def test_the_fallback_is_asked_and_both_are_told_the_config(shop: Shop) -> None:
    context = "{provider: broken, fallback: Archive, config: {most: 3}}"
    events = await shop.play(context)
    failed = only(events, "provider.failed")
    assert (failed.provider, failed.error, failed.fallback) == (
        "broken",
        "ConnectionError",
        "Archive",
    )
    assert only(events, "context.gathered").fallback
    assert shop.tasks[0].context.items == [{"told": {"most": 3}}]


async def test_who_can_do_without_goes_on_with_nothing(shop: Shop) -> None:
    context = "[{provider: slow, fallback: nothing, timeout_s: 0.01}, last_words]"
    events = await shop.play(context)
    assert "'slow'" in only(events, "provider.failed").message
    (item,) = only(events, "context.gathered").items
    assert item.provider == "context/last_words"


@pytest.mark.parametrize("context", ["broken", "[last_words, broken]"])
async def test_without_a_fallback_the_turn_fails_and_says_why(shop: Shop, context: str) -> None:
    events = await shop.play(context)
    assert shop.tasks == []
    assert only(events, "provider.failed").message == "the archive is closed"
    finished = only(events, "turn.finished")
    assert finished.status == "failed"
    assert finished.error.startswith("ContextUnavailable: broken: ")
    assert "ConnectionError: the archive is closed" in finished.error
    assert events[-1].kind == "run.failed"


async def test_a_type_that_nobody_knows_fails_the_provider(shop: Shop) -> None:
    events = await shop.play("{filter: {types: [PitchResults]}}")
    message = only(events, "provider.failed").message
    assert "'PitchResults'" in message and "shop.PitchResult" in message


# ------------------------------------------------------------------------ who sees what


@pytest.mark.parametrize(
    ("visibility", "is_seen"),
    [
        (Tenant("local"), True),
        (Tenant("other"), False),
        (Private({"Closer"}), True),
        (Private({"Opener"}), False),
    ],
)
async def test_an_agent_sees_what_it_may(shop: Shop, visibility: Visibility, is_seen: bool) -> None:
    await shop.put("On socks", visibility=visibility)
    events = await shop.play("{filter: {}}")
    assert (taglines(shop.tasks[0]) == ["On socks"]) is is_seen
    assert ("On socks" in str(events)) is is_seen


async def test_what_is_published_for_a_conversation_is_found_by_its_id(shop: Shop) -> None:
    await shop.put("On hats", correlation_id="another")
    ask = "startup_mode: UserDriven\nhuman_in_the_loop: true\nmax_turns: 1"
    run = await shop.start("correlation", orchestrator=ask)
    async for event in run.events():
        if event.kind == "question.asked":
            await shop.put("On socks", correlation_id=run.id)
            await run.answer(event.data.question, "Well?")
    assert taglines(shop.tasks[0]) == ["On socks"]


async def test_the_transcript_is_the_one_that_the_agent_reads(shop: Shop) -> None:
    code = PROVIDERS + "\n    def discreet(content):\n        return 'The customer thinks.'\n"
    hook = (
        "[{hook_type: process_last_received_message, hook_agent: Closer, filename: providers.py, "
        "function: discreet}]"
    )
    await shop.play("transcript", code, hooks=hook)
    (task,) = shop.tasks
    assert told(task)[0] == ("workflow", "The customer thinks.")
    assert "hesitates" not in task.prompt


async def test_what_ships_is_made_with_its_config(shop: Shop) -> None:
    rounds = "orchestration_pattern: RoundRobinPattern\nmax_turns: 3"
    context = "{provider: transcript, config: {last: 1, agents: [Closer]}}"
    await shop.play(context, orchestrator=rounds)
    shown = [task.context.items for task in shop.tasks]
    assert [[item["payload"]["text"] for item in each] for each in shown] == [
        [],
        ["Closer 1."],
        ["Closer 2."],
    ]


# ------------------------------------------------------------------------ types and code


async def test_types_of_the_code_are_known_beside_those_of_the_app(shop: Shop) -> None:
    code = """
        from pydantic import BaseModel
        from turnloom.board.spec import artifact_type

        @artifact_type(name="Lead")
        class Lead(BaseModel):
            name: str
        """
    await shop.put("On socks")
    events = await shop.play("{filter: {types: [Lead, PitchResult]}}", code)
    assert taglines(shop.tasks[0]) == ["On socks"]
    assert not every(events, "provider.failed")


async def test_code_that_is_asked_late_finds_the_types_of_its_module(shop: Shop) -> None:
    code = """
        from __future__ import annotations
        from pydantic import BaseModel
        from turnloom import ContextSlice

        class Deal(BaseModel):
            customer: Customer

        async def deals(request):
            return ContextSlice([Deal(customer={"name": "Robin"}).model_dump()])

        class Customer(BaseModel):
            name: str
        """
    await shop.play("deals", code)
    assert "Robin" in shop.tasks[0].prompt


async def test_the_code_of_providers_is_pinned(shop: Shop) -> None:
    events = await shop.play("recent_wins")
    assert set(events[0].data.code) == {"providers.py"}


# ------------------------------------------------------------------------ kills

TWICE = {
    "orchestrator.yaml": "initial_message: Begin.\nhuman_in_the_loop: true\nmax_turns: 2",
    "agents.yaml": """
        Closer:
          system_message: Close.
          context: [{provider: risky, fallback: steady}, transcript]
        """,
    "providers.py": """
        from tests.support import stage
        from turnloom import ContextSlice

        async def risky(request):
            stage.mark(f"risky {request.ctx.turn}")
            raise ConnectionError("closed")

        async def steady(request):
            stage.mark(f"steady {request.ctx.turn}")
            return ContextSlice([{"turn": request.ctx.turn}])
        """,
}
SCRIPT = {"script.yaml": "agents: {Closer: [One., Two.]}"}


async def test_a_run_killed_anywhere_has_the_log_of_one_that_was_not(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, as_json({**TWICE, **SCRIPT}))
    whole = Lives(folder, lambda question: "Go on.")
    undisturbed = await whole.live()
    assert len(every(undisturbed, "context.gathered")) == 2
    for point in range(whole.passed):
        events = await Lives(folder, lambda question: "Go on.").live(point)
        assert essence(events) == essence(undisturbed), point


async def test_who_has_answered_is_not_asked_again(tmp_path: Path) -> None:
    """The process ends while an engine is asked, when what was gathered is on record."""
    stage.clear()
    store, asked = str(tmp_path / "runs.db"), asyncio.Event()

    async def hang(task: Task) -> Answer:
        asked.set()
        await asyncio.sleep(60)
        return Answer("Too late.")

    async with Loom(store=store, engine=hang) as app:
        run = await app.start(write_folder(tmp_path, TWICE))
        await asyncio.wait_for(asked.wait(), 5)
    assert stage.marks == ["risky 1", "steady 1"]
    async with opened(tmp_path, store) as shop:
        await shop.app.resume(run.id)
        async for event in shop.app.handle(run.id).events():
            if event.kind == "question.asked":
                break
        assert stage.marks == ["risky 1", "steady 1"]
        assert shop.tasks[0].context.items[0] == {"turn": 1}
