"""Context that agents of a workflow folder have assembled from sources: shown, told, resumed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import stage
from tests.support.folders import as_json, write_folder
from tests.support.lives import Lives
from tests.support.logs import essence
from tests.support.plays import every, only
from tests.support.world import PATIENCE
from turnloom import Answer, DefinitionError, Event, Loom, RagCollection, RetrievalResult, Run, Task
from turnloom.assembly.logic import spoken
from turnloom.errors import UsageError
from turnloom.explain.spec.turn import TurnExplained
from turnloom.testing import InMemorySearch
from turnloom.wiring import token_counter

TEA = RetrievalResult("Tea is packed dry.", 0.9, "tea.md", chunk=2)
JARS = RetrievalResult("Jars are packed upright. " * 20, 0.8, "jars.md")
LAMPS = RetrievalResult("Lamps are packed last.", 0.3, "lamps.md")


class Manual(RagCollection):
    name = "manual"


SEARCH = "{retrieval: {collection: manual, query: '{topic}', min_relevance: 0.5}}"
VARIABLES = """
    definitions:
      topic: {type: string, source: {type: derived, default: tea}}
      customer: {type: object, source: {type: derived, default: {name: Ada, city: {zip: 7}}}}
    """
PROVIDERS = """
    from tests.support import stage
    from turnloom import ContextSlice

    async def archive(request):
        stage.mark(f"archive {request.ctx.turn}")
        return ContextSlice([{"told": dict(request.config)}], {"shelf": 7, "by": "archive"})

    async def annex(request):
        return ContextSlice([{"n": 1}], {"by": "annex", "floor": 2})

    async def broken(request):
        raise ConnectionError("the archive is closed")

    def in_short(messages):
        return f"{len(messages)} said something."
    """


class Desk:
    """An app with a collection and a workflow of one agent, and all that the agent was asked."""

    def __init__(self, app: Loom, where: Path, tasks: list[Task]) -> None:
        self.app = app
        self.tasks = tasks
        self.search = InMemorySearch()
        self.search.seed(TEA, JARS, LAMPS)
        app.register_collection(Manual, self.search)
        self._where = where

    async def start(self, context: str, turns: int = 1, **files: str) -> Run:
        """Begin a conversation whose agent has this context."""
        setup = "initial_message: Well?\norchestration_pattern: RoundRobinPattern\nmax_turns: "
        declared = {
            "agents": f"Clerk: {{system_message: Pack., context: {context}}}",
            "orchestrator": f"{setup}{turns}",
            "context_variables": VARIABLES,
            **files,
        }
        texts = {f"{part}.yaml": text for part, text in declared.items()}
        folder = write_folder(self._where, {**texts, "providers.py": PROVIDERS})
        return await self.app.start(folder, user_id="u1")

    async def play(self, *sources: str, more: str = "", turns: int = 1) -> list[Event]:
        """The log of a conversation whose agent has these sources."""
        run = await self.start(f"{{sources: [{', '.join(sources)}]{more}}}", turns)
        return [event async for event in run.events()]

    async def explained(self, turn: int = 1) -> TurnExplained:
        """A turn of the run begun last; its record must hold, and say what was sent."""
        latest, *_ = await self.app.runs()
        found = await self.app.explain.turn(latest.run, turn)
        assert isinstance(found, TurnExplained)
        assert found.verified, found.doubts
        assert found.prompt == self.tasks[turn - 1].prompt
        return found


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    stage.clear()
    tasks: list[Task] = []

    async def engine(task: Task) -> Answer:
        tasks.append(task)
        return Answer(f"{task.agent} {task.turn}.")

    async with Loom(store="memory", engine=engine) as app:
        yield Desk(app, tmp_path, tasks)


def told(task: Task) -> list[tuple[str, str]]:
    return [(message.author, message.text) for message in task.transcript]


# ------------------------------------------------------------------------ what an agent is shown


@pytest.mark.parametrize(
    ("source", "content"),
    [
        ("{state: topic}", "tea"),
        ("{state: customer.name}", "Ada"),
        ("{state: customer.city.zip}", "7"),
        ("{state: app_id}", "local"),
        ("{literal: Be kind.}", "Be kind."),
        ("{variables: [topic]}", '- topic: "tea"'),
        (SEARCH, f"{TEA.content}\n---\n{JARS.content}"),
        ("{provider: archive, config: {most: 3}}", '{"told":{"most":3}}'),
        ("{provider: broken, fallback: archive}", '{"told":{}}'),
        ("{history: {}}", "workflow: Well?"),
    ],
)
async def test_each_source_is_shown(desk: Desk, source: str, content: str) -> None:
    await desk.play(source)
    (task,) = desk.tasks
    assert told(task)[-1] == ("user", f"Context:\n{content}")
    assert all(segment.origin for segment in (await desk.explained()).segments)


async def test_what_was_said_stands_beside_sources_unless_it_is_one_of_them(desk: Desk) -> None:
    await desk.play("{literal: Be kind.}")
    await desk.play("{history: {}}", "{literal: Be kind.}")
    beside, among = desk.tasks
    assert told(beside) == [("workflow", "Well?"), ("user", "Context:\nBe kind.")]
    assert told(among) == [("user", "Context:\nworkflow: Well?\n\nBe kind.")]


async def test_what_was_said_is_as_secret_among_sources_as_beside_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR", "hunter2hunter2")
    door = "{type: string, secret: true, source: {type: environment, env_var: DOOR}}"
    setup = "initial_message: It is hunter2hunter2 and ⟨secret:door⟩.\nmax_turns: 1"
    for source in ("{literal: Be kind.}", "{history: {}}"):
        run = await desk.start(
            f"{{sources: [{source}]}}",
            orchestrator=setup,
            context_variables=f"definitions: {{door: {door}}}",
        )
        await run.finished()
    for task in desk.tasks:
        assert "workflow: It is ⟨secret:door⟩ and ⟨secret :door⟩." in task.prompt


async def test_a_window_bounds_what_was_said_and_the_rest_is_told(desk: Desk) -> None:
    await desk.play("{history: {last: 2}}", turns=3)
    assert told(desk.tasks[2]) == [("user", "Context:\nClerk: Clerk 1.\n\nClerk: Clerk 2.")]
    (left_out,) = (await desk.explained(3)).withheld
    assert (left_out.reason, left_out.detail) == ("filtered", "1 messages")
    assert left_out.origin.startswith("context[0] from_history: events ")


async def test_a_function_of_the_code_tells_of_the_rest(desk: Desk) -> None:
    events = await desk.play("{history: {last: 1, summarise: in_short}}", turns=2)
    assert told(desk.tasks[1]) == [
        ("user", "Context:\nsummary: 1 said something.\n\nClerk: Clerk 1.")
    ]
    assert only(events, "history.summarised").text == "1 said something."


async def test_hooks_change_what_a_window_shows(desk: Desk) -> None:
    hook = (
        "[{hook_type: process_last_received_message, hook_agent: Clerk, filename: providers.py, "
        "function: in_short}]"
    )
    run = await desk.start("{sources: [{history: {last: 5}}]}", hooks=hook)
    await run.finished()
    assert told(desk.tasks[0]) == [("user", "Context:\nworkflow: 5 said something.")]
    await desk.explained()


async def test_a_search_is_told_with_scores_sources_and_what_had_no_room(desk: Desk) -> None:
    search = "{retrieval: {collection: manual, query: 'all about {topic}', min_relevance: 0.2}}"
    events = await desk.play(
        search, "{literal: Be kind., priority: 5}", more=", budget: {max_tokens: 30}"
    )
    fact = only(events, "retrieval.searched")
    assert (fact.collection, fact.query, fact.agent) == ("manual", "all about tea", "Clerk")
    turn = await desk.explained()
    text = str(turn)
    assert "tea.md#2" in text and '"all about tea"' in text
    assert [(each.origin.rpartition(" ")[2], each.reason) for each in turn.withheld] == [
        ("jars.md#0", "over_budget"),
    ]
    assert LAMPS.content in turn.prompt
    assert sum(each.tokens for each in turn.segments if "context." in each.kind) <= 30


async def test_what_was_said_is_counted_as_the_rest_is(desk: Desk) -> None:
    await desk.play("{literal: Be kind.}", turns=3)
    counter = token_counter()
    for number in (1, 2, 3):
        turn = await desk.explained(number)
        assert turn.counter == counter.name
        assert turn.tokens == sum(each.tokens for each in turn.segments)
        (said,) = (each for each in turn.segments if each.kind == "history")
        texts = [spoken(each.author, each.text) for each in said.messages]
        assert said.tokens == sum(map(counter.count, texts))


async def test_a_format_says_how_it_is_written(desk: Desk) -> None:
    search = "{retrieval: {collection: manual, query: tea, top_k: 1}, title: Rules}"
    more = """, format: {citation: ' [{source_id}]', header: "# {title}\\n"}"""
    await desk.play(search, more=more)
    assert told(desk.tasks[0])[-1][1] == "Context:\n# Rules\nTea is packed dry. [tea.md]"


async def test_filters_may_be_values_of_the_state(desk: Desk) -> None:
    filters = "{app: {state: app_id}, zip: {state: customer.city.zip}, lang: en}"
    query = "{topic} for {customer.name}"
    await desk.play(f"{{retrieval: {{collection: manual, query: '{query}', filters: {filters}}}}}")
    (asked,) = desk.search.searches
    assert asked.query == "tea for Ada"
    assert asked.filters == {"app": "local", "zip": 7, "lang": "en"}


async def test_what_providers_say_about_their_items_reaches_the_task(desk: Desk) -> None:
    await desk.play("{provider: archive}", "{literal: Be kind.}", "{provider: annex}")
    assert desk.tasks[0].context.metadata == {"shelf": 7, "by": "archive", "floor": 2}


async def test_a_source_that_fails_fails_the_turn_before_an_engine_is_asked(desk: Desk) -> None:
    events = await desk.play("{provider: broken}")
    assert not desk.tasks
    assert only(events, "turn.finished").error.startswith("ContextUnavailable: broken: ")


async def test_variables_that_are_set_aside_are_suppressed(tmp_path: Path) -> None:
    tasks: list[Task] = []

    async def engine(task: Task) -> Answer:
        tasks.append(task)
        return Answer("Packed.")

    async with Loom(store="memory", engine=engine, strict=False) as app:
        desk = Desk(app, tmp_path, tasks)
        sources = "{sources: [{variables: [topic]}, {state: customer.name}, {literal: Be kind.}]}"
        run = await desk.start(sources, context_variables="definitions: 5")
        await run.finished()
        assert told(tasks[0])[-1] == ("user", "Context:\nBe kind.")
        withheld = (await desk.explained()).withheld
    assert [(each.origin, each.reason) for each in withheld] == [
        ("context_variables.topic", "suppressed"),
        ("context[0] from_variables(topic)", "empty"),
        ("context[1] from_state(customer.name)", "empty"),
    ]


# ------------------------------------------------------------------------ collections


async def test_a_collection_is_declared_registered_or_the_run_does_not_start(desk: Desk) -> None:
    with pytest.raises(DefinitionError) as refused:
        await desk.start("{sources: [{retrieval: {collection: manul, query: tea}}]}")
    (problem,) = refused.value.diagnostics
    assert (problem.code, problem.line, problem.severity) == ("W057", 1, "error")
    assert "'manual'" in problem.remedy


async def test_a_collection_of_the_code_is_opened_once_for_all_runs(tmp_path: Path) -> None:
    code = """
        from turnloom import RagCollection

        class Notes(RagCollection):
            name = "notes"
        """
    files = {
        "agents.yaml": "A: {context: {sources: [{retrieval: {collection: notes, query: x}}]}}",
        "providers.py": code,
        "script.yaml": "agents: {A: [Done.]}",
    }
    folder = write_folder(tmp_path, files)
    opened: list[InMemorySearch] = []

    class Notes(RagCollection):
        name = "notes"

    def make() -> InMemorySearch:
        opened.append(InMemorySearch())
        return opened[-1]

    async with Loom(store="memory") as app:
        app.register_collection(Notes, make)
        for _ in range(3):
            await (await app.start(folder)).finished()
        with pytest.raises(UsageError):
            app.register_collection(Notes, make)
    (search,) = opened
    assert len(search.searches) == 3


# ------------------------------------------------------------------------ kills

LONG = {
    "orchestrator.yaml": "initial_message: Begin.\nhuman_in_the_loop: true\nmax_turns: 2",
    "agents.yaml": """
        Clerk:
          context:
            sources:
            - history: {last: 1, summarise: in_short}
            - retrieval: {collection: manual, query: tea}
            - provider: archive
            - literal: Be kind.
            budget: {max_tokens: 60}
        """,
    "providers.py": PROVIDERS,
}
SCRIPT = {"script.yaml": "agents: {Clerk: [One., Two.]}"}


async def test_a_run_killed_anywhere_has_the_log_of_one_that_was_not(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, as_json({**LONG, **SCRIPT}))
    search = InMemorySearch()
    search.seed(TEA, JARS)

    def lives() -> Lives:
        return Lives(folder, lambda question: "Go on.", collections={Manual: search})

    whole = lives()
    undisturbed = await whole.live()
    assert len(every(undisturbed, "retrieval.searched")) == 1
    assert len(every(undisturbed, "frame.assembled")) == 2
    for point in range(whole.passed):
        assert undigested(await lives().live(point)) == undigested(undisturbed), point


def undigested(events: list[Event]) -> list[Any]:
    """A log without digests of frames: they cover what is before a window by the numbers of its
    events, and a resumption shifts these."""
    return [
        (
            *about,
            {key: said for key, said in data.items() if key not in ("view", "digest", "request")},
        )
        for *about, data in essence(events)
    ]


async def test_after_a_restart_the_engine_is_shown_the_same(tmp_path: Path) -> None:
    """The process ends while an engine is asked, when the frame is on record."""
    stage.clear()
    store, asked = str(tmp_path / "runs.db"), asyncio.Event()
    tasks: list[Task] = []

    async def hang(task: Task) -> Answer:
        tasks.append(task)
        asked.set()
        await asyncio.Event().wait()
        return Answer("Too late.")

    async def answer(task: Task) -> Answer:
        tasks.append(task)
        return Answer("Packed.")

    async with Loom(store=store, engine=hang) as app:
        Desk(app, tmp_path, [])
        run = await app.start(write_folder(tmp_path, LONG))
        await asyncio.wait_for(asked.wait(), PATIENCE)
    async with Loom(store=store, engine=answer) as app:
        desk = Desk(app, tmp_path, [])
        await app.resume(run.id)
        async for event in app.handle(run.id).events():
            if event.kind == "question.asked":
                break
        assert not desk.search.searches and stage.marks == ["archive 1"]
        explained = await app.explain.turn(run.id, 1)
    before, after = tasks
    assert after.prompt == before.prompt == explained.prompt
    assert told(after) == told(before)
    assert after.context.items == before.context.items
    assert after.context.metadata == before.context.metadata == {"shelf": 7, "by": "archive"}
