"""Context that is assembled from sources on a board: what engines are shown, and what is told."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.explain.test_turn import altered
from tests.reaction.scenes import (
    Clerk,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    failures,
    idle,
    logs,
    pack,
)
from tests.support.boards import Place, begin_process, go_round, live
from turnloom import (
    Board,
    Budget,
    ContextFormat,
    FilteredContextProvider,
    Loom,
    RagCollection,
    RedactingProvider,
    RetrievalResult,
    from_history,
    from_literal,
    from_provider,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.agents.spec import Answer, Publication, Task
from turnloom.assembly.spec import ContextRequest, ContextSlice, Document
from turnloom.assembly.spec.sources import Source
from turnloom.board.spec import FilterConfig, Labelled, Private, Public
from turnloom.errors import CollectionUnavailable, DefinitionError, UsageError
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.spec.turn import TurnExplained
from turnloom.reaction.spec import Batch
from turnloom.testing import InMemorySearch, Killed

TEA = RetrievalResult("Tea is packed dry.", 0.9, "tea.md", chunk=2)
JARS = RetrievalResult("Jars are packed upright.", 0.8, "jars.md")
LAMPS = RetrievalResult("Lamps are packed last.", 0.3, "lamps.md")


class Manual(RagCollection):
    name = "manual"


@pytest.fixture
def manual(app: Loom) -> InMemorySearch:
    search = InMemorySearch()
    search.seed(TEA, JARS, LAMPS)
    app.register_collection(Manual, search)
    return search


def declare(board: Board, clerk: Any, *sources: Source, **said: Any) -> None:
    """An agent that packs orders with context from these sources."""
    agent = board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    agent.with_sources(*sources, **said)


async def explained(app: Loom, turn: int = 1) -> TurnExplained:
    """A turn of the run begun last; its record must hold."""
    latest, *_ = await app.runs()
    found = await app.explain.turn(latest.run, turn)
    assert isinstance(found, TurnExplained)
    assert found.verified, found.doubts
    return found


async def wins(request: ContextRequest) -> ContextSlice:
    return ContextSlice([{"type": "Win", "payload": {"item": "lamp"}}], {"most": 1})


SOURCES: dict[str, tuple[Source, str]] = {
    "state": (from_state("item"), "tea"),
    "retrieval": (from_retrieval(Manual, "{item}", top_k=1), TEA.content),
    "literal": (from_literal("Be kind."), "Be kind."),
    "variables": (from_variables("tier"), '- tier: "gold"'),
    "artifact": (from_provider(wins), '{"payload":{"item":"lamp"},"type":"Win"}'),
    "history": (from_history(), "greeter: Hello there."),
}
TIER = {"type": "string", "source": {"type": "derived", "default": "gold", "triggers": []}}
VARIABLES = {"definitions": {"tier": TIER}}
DOOR = {"type": "string", "secret": True, "source": {"type": "environment", "env_var": "DOOR"}}


@pytest.mark.parametrize("kind", SOURCES)
async def test_each_source_is_shown(app: Loom, manual: InMemorySearch, kind: str) -> None:
    board, clerk, (source, content) = app.board(variables=VARIABLES), Clerk(), SOURCES[kind]

    async def greet(task: Task) -> Answer:
        return Answer("Hello there.", artifacts=(Publication(Order()),))

    board.agent("greeter").consumes(Payment).publishes(Order).with_engines(greet)
    declare(board, clerk, source)
    await board.publish(Payment())
    await idle(board)
    (task,) = clerk.tasks
    item = task.context.items[0]
    assert (item["type"], item["content"]) == (kind, content)
    context, given = task.transcript
    assert context.text.startswith(f"Context:\n{content}") and given.text.startswith("Input:\n")
    turn = await explained(app, turn=2)
    segment, *_ = (each for each in turn.segments if each.kind == f"context.{kind}")
    assert (segment.origin, segment.text) == (item["origin"], content)
    assert turn.prompt == task.prompt


async def test_sources_stand_in_order_and_tokens_add_up(
    app: Loom, board: Board, manual: InMemorySearch
) -> None:
    clerk = Clerk(pack)
    sources = from_retrieval(Manual, "{item}", title="Rules"), from_literal("Be kind.")
    declare(board, clerk, *sources, format=ContextFormat(citation=" [{source_id}]"))
    await board.publish(Order())
    await idle(board)
    text = "Rules:\nTea is packed dry. [tea.md]\n---\nJars are packed upright. [jars.md]"
    assert clerk.tasks[0].transcript[0].text == f"Context:\n{text}\n\nBe kind."
    turn = await explained(app)
    assert sum(each.tokens for each in turn.segments) == turn.tokens
    assert sum(each.share for each in turn.segments) == pytest.approx(100, abs=0.5)
    reasons = [each.reason for each in turn.segments if each.kind == "context.retrieval"]
    assert reasons == ["tea.md#2 scores 0.9", "jars.md#0 scores 0.8"]


async def test_what_was_found_is_checked_against_the_frame(
    app: Loom, board: Board, manual: InMemorySearch
) -> None:
    declare(board, Clerk(), from_retrieval(Manual, "how"), from_literal("Be kind."))
    await board.publish(Order())
    await idle(board)
    events = await logs(app)
    (searched,) = (event for event in events if event.kind == "retrieval.searched")
    (shown,) = (event for event in events if event.kind == "frame.assembled")
    first, *others = searched.data.results
    forged = msgspec.structs.replace(first, text="Tea is packed wet.")
    for log, doubt in (
        (altered(events, searched.seq, results=(forged, *others)), "from_retrieval(manual)"),
        (altered(events, shown.seq, tokens=shown.data.tokens + 1), "number of tokens"),
    ):
        assert any(doubt in each for each in explain_turn(log, 1).doubts)


async def test_what_has_no_room_is_withheld_with_the_reason(
    app: Loom, board: Board, manual: InMemorySearch
) -> None:
    clerk, long = Clerk(), from_literal("Of little use. " * 40)
    sources = from_retrieval(Manual, "{item}", priority=9), from_retrieval(Manual, "how"), long
    declare(board, clerk, *sources, budget=Budget(30))
    await board.publish(Order())
    await idle(board)
    turn = await explained(app)
    own = sum(each.tokens for each in turn.segments if each.kind.startswith("context."))
    assert own <= 30
    assert TEA.content in clerk.tasks[0].prompt and JARS.content in clerk.tasks[0].prompt
    reasons = [each.reason for each in turn.withheld]
    assert sorted(reasons) == [*["duplicate"] * 2, *["low_relevance"] * 2, "over_budget"]


class Generous:
    """A collection that gives what is not relevant, too."""

    async def search(self, query: str, *sought: Any) -> Sequence[RetrievalResult]:
        return [TEA, LAMPS]


async def test_what_is_not_relevant_is_withheld(app: Loom, board: Board) -> None:
    generous: Any = Generous()
    app.register_collection(Manual, generous)
    declare(board, clerk := Clerk(), from_retrieval(Manual, "how", min_relevance=0.5))
    await board.publish(Order())
    await idle(board)
    assert LAMPS.content not in clerk.tasks[0].prompt
    (left_out,) = (await explained(app)).withheld
    assert (left_out.reason, left_out.detail) == (
        "low_relevance",
        "score 0.3 is below 0.5",
    )


class Broken:
    """A collection that is not there."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error

    async def search(self, *sought: Any) -> Sequence[RetrievalResult]:
        if self.error is not None:
            raise self.error
        return [TEA]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CollectionUnavailable("No answer. Start it."), "CollectionUnavailable: No answer."),
        (KeyError("shelf"), "KeyError: 'shelf'"),
    ],
)
async def test_a_collection_that_fails_fails_the_turn_until_it_is_there(
    app: Loom, board: Board, error: Exception, told: str
) -> None:
    broken: Any = Broken(error)
    app.register_collection(Manual, broken)
    declare(board, clerk := Clerk(pack), from_retrieval(Manual, "how"))
    order = await board.publish(Order())
    (failure,) = await failures(board)
    assert told in failure and not clerk.tasks
    broken.error = None
    await board.retry(order)
    await idle(board)
    assert TEA.content in clerk.tasks[0].prompt


async def test_a_function_that_raises_fails_the_turn(board: Board) -> None:
    declare(board, clerk := Clerk(pack), from_state(lambda order: order.gone))
    await board.publish(Order())
    (failure,) = await failures(board)
    assert "ContextUnavailable" in failure and "AttributeError" in failure and not clerk.tasks


class Slow:
    """A collection that takes its time; several stand there meanwhile."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def search(self, query: str, *sought: Any) -> Sequence[RetrievalResult]:
        self.asked.append(query)
        await go_round()
        return [TEA]


async def test_the_same_search_is_made_once_in_a_run(app: Loom, board: Board) -> None:
    slow: Any = Slow()
    app.register_collection(Manual, slow)
    clerks = {name: Clerk() for name in ("one", "two", "three")}
    for name, clerk in clerks.items():
        agent = board.agent(name).consumes(Order).with_engines(clerk)
        agent.with_sources(from_retrieval(Manual, "{item}"))
    for item in ("tea", "tea", "jar"):
        await board.publish(Order(item=item), correlation_id="all")
    await idle(board)
    assert sorted(slow.asked) == ["jar", "tea"]
    assert len(await facts(app, "retrieval.searched")) == 2
    for task in (task for clerk in clerks.values() for task in clerk.tasks):
        assert TEA.content in task.prompt


async def test_turns_side_by_side_are_each_shown_their_own(board: Board) -> None:
    clerk = Clerk(pack)
    declare(board, clerk, from_state("item"))
    await board.publish_many([Order(item=str(n)) for n in range(20)], correlation_id="all")
    await idle(board)
    for task in clerk.tasks:
        assert [each["content"] for each in task.context.items] == [task.inputs[0].payload["item"]]


async def test_several_inputs_are_known_by_their_types(board: Board) -> None:
    clerk = Clerk()
    agent = board.agent("clerk").consumes(Order, Payment).with_engines(clerk)
    agent.with_sources(from_state("Order.item"), from_state(lambda all: all["Payment"].amount))
    await board.publish(Order(item="jar"), correlation_id="one")
    await board.publish(Payment(amount=7), correlation_id="one")
    await idle(board)
    assert [each["content"] for each in clerk.tasks[0].context.items] == ["jar", "7"]


async def test_several_of_one_type_are_a_list(board: Board) -> None:
    clerk = Clerk()
    agent = board.agent("clerk").consumes(Order, batch=Batch(2)).with_engines(clerk)
    agent.with_sources(from_state(lambda all: [each.item for each in all["Order"]]))
    await board.publish_many([Order(item="a"), Order(item="b")])
    await idle(board)
    assert clerk.tasks[0].context.items[0]["content"] in ('["a","b"]', '["b","a"]')


async def test_redaction_holds_for_inputs_and_items(app: Loom, board: Board) -> None:
    clerk = Clerk()
    payments = FilteredContextProvider(FilterConfig(types={"Payment"}))
    board.register(Payment)
    agent = board.agent("clerk").consumes(Receipt, Order).with_engines(clerk)
    agent.with_sources(
        from_provider(RedactingProvider(payments, keys=["amount"])),
        from_provider(RedactingProvider(wins, keys=["number"])),
        from_provider(RedactingProvider(wins, keys=["total"])),
    )
    await board.publish(Payment(amount=47110815711))
    await board.publish(Receipt(total=47120815712), correlation_id="one")
    await board.publish(Order(number=47130815713), correlation_id="one")
    await idle(board)
    (task,) = clerk.tasks
    assert [each.payload for each in task.inputs] == [{}, {"item": "tea"}]
    amounts = "47110815711", "47120815712", "47130815713"  # too long to be part of an instant
    assert not any(amount in task.prompt for amount in amounts)
    turn = await explained(app)
    paths = {each.origin.rpartition(".")[2] for each in turn.withheld if each.reason == "redacted"}
    assert paths == {"amount", "number", "total"}


async def test_each_turn_tells_what_was_redacted_of_its_own_inputs(app: Loom, board: Board) -> None:
    clerk = Clerk(held=True)
    agent = board.agent("clerk").consumes(Order).consumes(Receipt).with_engines(clerk)
    agent.with_sources(from_provider(RedactingProvider(wins, keys=["total"])))
    await board.publish(Order(), correlation_id="one")
    receipts = [await board.publish(Receipt(total=n), correlation_id="one") for n in (1, 2)]
    clerk.release.set()
    await idle(board)
    told: list[str] = []
    for turn in (1, 2, 3):
        withheld = (await explained(app, turn=turn)).withheld
        told += [each.origin for each in withheld if each.reason == "redacted"]
    assert told == [f"artifact {each.id}.total" for each in receipts]


@pytest.mark.parametrize("is_shown", [True, False])
async def test_secrets_are_given_to_whom_they_are_shown_and_never_written(
    app: Loom, monkeypatch: pytest.MonkeyPatch, is_shown: bool
) -> None:
    monkeypatch.setenv("DOOR", "hunter2hunter2")
    search = InMemorySearch()
    search.seed(("The door opens with hunter2hunter2.", 0.9))
    app.register_collection(Manual, search)
    agents = {"clerk": {"variables": ["door"]}} if is_shown else {}
    board = app.board(variables={"definitions": {"door": DOOR}, "agents": agents})
    declare(board, clerk := Clerk(), from_retrieval(Manual, "door"), from_state("item"))
    await board.publish(Order(item="hunter2hunter2"))
    await idle(board)
    found, order = clerk.tasks[0].context.items
    door = "hunter2hunter2" if is_shown else "⟨secret:door⟩"
    assert found["content"] == f"The door opens with {door}."
    assert order["content"] == clerk.tasks[0].inputs[0].payload["item"] == door
    assert found["content"] in clerk.tasks[0].prompt
    assert "hunter2" not in str(await explained(app)) + str(await logs(app))


async def test_a_variable_among_the_sources_is_shown(
    app: Loom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR", "hunter2hunter2")
    board = app.board(variables={"definitions": {"door": DOOR}})
    declare(board, clerk := Clerk(), from_variables("door"), from_state("item"))
    await board.publish(Order(item="hunter2hunter2"))
    await idle(board)
    assert [each["content"] for each in clerk.tasks[0].context.items] == [
        '- door: "hunter2hunter2"',
        "hunter2hunter2",
    ]
    assert "hunter2" not in str(await explained(app)) + str(await logs(app))


async def test_a_passage_that_looks_like_a_secret_opens_none(
    app: Loom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR", "hunter2hunter2")
    search = InMemorySearch()
    search.seed(RetrievalResult("Say ⟨secret:door⟩!", 0.9, "⟨secret:door⟩.md"))
    app.register_collection(Manual, search)
    agents = {"clerk": {"template": "The door: {door}.", "variables": ["door"]}}
    board = app.board(variables={"definitions": {"door": DOOR}, "agents": agents})
    cited = ContextFormat(citation=" [{source_id}]")
    declare(board, clerk := Clerk(), from_retrieval(Manual, "door"), format=cited)
    await board.publish(Order())
    await idle(board)
    assert "Context:\nSay ⟨secret :door⟩! [⟨secret :door⟩.md]" in clerk.tasks[0].prompt
    assert str(clerk.tasks).count("hunter2") == clerk.tasks[0].system.count("hunter2") == 2
    await explained(app)


@pytest.mark.parametrize("error", [KeyError, CollectionUnavailable])
async def test_what_a_collection_says_of_its_trouble_tells_no_secret(
    app: Loom, monkeypatch: pytest.MonkeyPatch, error: type[Exception], capfd: Any, caplog: Any
) -> None:
    secret = "hunter2-'\"hunter2"
    monkeypatch.setenv("DOOR", secret)
    broken: Any = Broken(error(f"Nobody opens {secret}."))
    app.register_collection(Manual, broken)
    board = app.board(variables={"definitions": {"door": DOOR}})
    declare(board, Clerk(), from_retrieval(Manual, "door"))
    await board.publish(Order())
    (failure,) = await failures(board)
    latest, *_ = await app.runs()
    told = [failure, str(latest), str(await logs(app)), str(await app.explain.timeline(latest.run))]
    assert "Nobody opens" in failure
    for text in (*told, caplog.text, *capfd.readouterr()):
        assert "hunter2" not in text


async def test_the_engine_that_has_a_provider_keeps_it(app: Loom, board: Board) -> None:
    class Special(Clerk):
        context_provider = staticmethod(wins)

    first, special = Clerk(), Special()
    agent = board.agent("clerk").consumes(Order).with_engines(first, special)
    agent.with_sources(from_literal("Be kind."))
    await board.publish(Order())
    await idle(board)
    assert [each["type"] for each in first.tasks[0].context.items] == ["literal"]
    assert [each["type"] for each in special.tasks[0].context.items] == ["Win"]
    await explained(app)


async def test_nothing_is_looked_up_again_after_a_kill() -> None:
    place, tasks, asked = Place(), list[Task](), list[str]()

    class Counting(InMemorySearch):
        async def search(self, query: str, *sought: Any) -> Any:
            asked.append(query)
            return await super().search(query, *sought)

    search = Counting()
    search.seed(TEA, JARS)

    async def provider(request: ContextRequest) -> ContextSlice:
        asked.append(request.agent.name)
        return await wins(request)

    async def engine(task: Task) -> Parcel:
        tasks.append(task)
        if len(tasks) == 1:
            raise Killed
        return pack(task)

    async def script(board: Board) -> None:
        await board.resume()
        await board.publish(Order(), id="o1")
        await idle(board)

    for is_last in (False, True):
        process = begin_process(place)
        process.app.register_collection(Manual, search)
        declare(process.board, engine, from_retrieval(Manual, "{item}"), from_provider(provider))
        assert await live(process, script) == is_last
    before, after = tasks
    assert asked == ["tea", "clerk"]
    assert before.prompt == after.prompt and before.context == after.context
    assert len(after.context.items) == 3
    assert after.context.metadata == {"most": 1}


async def test_what_sources_name_must_be_there_and_all_that_is_not_is_told(app: Loom) -> None:
    board = app.board(variables=VARIABLES)
    declare(
        board,
        Clerk(),
        from_state("itme", min_tokens=9),
        from_variables("teir"),
        from_retrieval(Manual, "{itme}"),
        budget=Budget(8),
    )
    with pytest.raises(DefinitionError) as refused:
        await board.publish(Order())
    found = refused.value.diagnostics
    assert {each.file for each in found} == {"board:board/clerk"}
    assert [each.code for each in found] == ["W055", "W021", "W056", "W059"]
    meant = ["'item'", "'tier'", "'item'", "max_tokens"]
    assert [name in each.remedy for name, each in zip(meant, found, strict=True)] == [True] * 4


async def test_sources_are_said_once_and_are_sources(board: Board) -> None:
    agent, wrong = board.agent("clerk").consumes(Order), Any
    with pytest.raises(UsageError, match="Any"):
        agent.with_sources(wrong)
    with pytest.raises(UsageError, match="with_sources"):
        agent.with_sources()
    agent.with_context(wins)
    with pytest.raises(UsageError, match="with_context"):
        agent.with_sources(from_literal("Be kind."))
    assert not await everything(board)


async def test_each_agent_finds_what_it_may_see(app: Loom, board: Board) -> None:
    """What was found for one is not what another is shown; what is the same for all is."""
    search = InMemorySearch()
    app.register_collection(Manual, search)
    await search.add(
        [
            Document("all", "tea for all"),
            Document("hr", "tea for hr", visibility=Labelled({"hr"})),
            Document("two", "tea for two", visibility=Private({"two"})),
        ]
    )
    clerks = {name: Clerk(held=True) for name in ("one", "two", "three")}
    for name, clerk in clerks.items():
        agent = board.agent(name).consumes(Order).with_engines(clerk)
        agent.with_sources(from_retrieval(Manual, "tea", min_relevance=0.1))
        if name == "three":
            agent.labels("hr")
    await board.publish_many([Order(), Order(item="jar")], correlation_id="all")
    for clerk in clerks.values():  # the run of the first order is there for the second
        clerk.release.set()
    await idle(board)
    found = {
        name: {each["content"] for task in clerk.tasks for each in task.context.items}
        for name, clerk in clerks.items()
    }
    assert {name: len(clerk.tasks) for name, clerk in clerks.items()} == dict.fromkeys(clerks, 2)
    assert {name: {each.split()[-1] for each in some} for name, some in found.items()} == {
        "one": {"all"},
        "two": {"all", "two"},
        "three": {"all", "hr"},
    }
    assert len(search.searches) == 3
    facts_found = await facts(app, "retrieval.searched")
    labels = {each.source_id: each.visibility for fact in facts_found for each in fact.results}
    assert labels == {"all": Public(), "hr": Labelled({"hr"}), "two": Private({"two"})}


class Careless:
    """A collection that says who may see its results, and gives them to everybody."""

    async def search(
        self, query: str, top_k: int, min_relevance: float, filters: Any
    ) -> Sequence[RetrievalResult]:
        return [TEA, msgspec.structs.replace(JARS, visibility=Private({"two"}))]


async def test_results_are_shown_to_whom_they_say(app: Loom, board: Board) -> None:
    careless: Any = Careless()
    app.register_collection(Manual, careless)
    clerks = {name: Clerk() for name in ("one", "two")}
    for name, clerk in clerks.items():
        agent = board.agent(name).consumes(Order).with_engines(clerk)
        agent.with_sources(from_retrieval(Manual, "tea"))
    await board.publish(Order())
    await idle(board)
    shown = {name: JARS.content in clerk.tasks[0].prompt for name, clerk in clerks.items()}
    assert shown == {"one": False, "two": True}
