"""A program that uses all of the public face; type checkers at their strictest find nothing."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Annotated, assert_type

from pydantic import BaseModel, ConfigDict

import turnloom as t
from turnloom.events import RunFinished, StepCompensated, TurnStarted
from turnloom.testing import InMemorySearch


class Draft(BaseModel):
    """The state of the flow."""

    model_config = ConfigDict(frozen=True)

    topic: str = ""
    text: str = ""
    score: int = 0
    notes: Annotated[list[str], t.append] = []
    counts: Annotated[dict[str, int], t.merge] = {}


class Verdict(BaseModel):
    """What the judge answers."""

    good: bool


@t.artifact_type(name="program.Order", index=["item"])
class Order(BaseModel):
    """What is published."""

    item: str
    price: float = 1.0


@t.artifact_type(name="program.Parcel")
class Parcel(BaseModel):
    """What is made of it."""

    label: str


class Library(t.RagCollection):
    """A collection."""

    chunking = t.Chunking(tokens=100, overlap=10)


# Steps: of the state, of the state and the context, plain and async, functions and objects.


def outline(state: Draft) -> dict[str, object]:
    return {"notes": [f"about {state.topic}"]}


async def research(state: Draft, ctx: t.StepContext) -> t.Update[Draft]:
    await ctx.once("look", lambda: "seen")
    ctx.set("tone", "kind")
    where = [ctx.run_id, ctx.step, ctx.execution_id, ctx.idempotency_key, f"{ctx.attempt}"]
    failure: t.StepFailure | None = ctx.failure
    paths: Sequence[t.PathResult] = ctx.paths
    decided: Mapping[str, t.DecisionRecord] = ctx.approvals
    undone: t.Execution | None = ctx.undoes
    assert undone is None
    known = {**ctx.to_dict(), **ctx.data}
    if ctx.contains("tone") and ctx.remove("tone") and failure is None and not paths and known:
        return t.Update(notes=[where[1]], counts={"decided": len(decided)}, confidence=0.9)
    return t.Update({"notes": ["nothing"]})


class Count:
    """A step that is an object."""

    async def run(self, state: Draft) -> t.StepChange:
        return {"score": state.score + 1}


class Sign:
    """A step that is made with something, and is told where it stands."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, state: Draft, ctx: t.StepContext) -> t.StepChange:
        return {"notes": [f"{self.name} in {ctx.step}"]}


def undo(state: Draft) -> None:
    return None


async def answers(task: t.Task) -> t.Answer:
    if task.output is not None:
        return t.Answer("", output={"good": True})
    return t.Answer(f"Well: {task.prompt[:5]}", usage=t.Usage(1, 1))


def longest(answer: t.Answer) -> float:
    return float(len(answer.text))


def look_up(word: str) -> str:
    """Look a word up."""
    return word.upper()


def gather(state: Draft, ctx: t.StepContext) -> t.StepChange:
    return {"notes": [each.name for each in ctx.paths]}


class Write(t.AgentStep[Draft]):
    """An agent that gives a text."""

    tools = (look_up,)
    max_tool_rounds = 2
    thread = "writing"

    def instructions(self) -> str:
        return "Write."

    def user_prompt(self, state: Draft) -> str:
        return state.topic

    def apply(self, state: Draft, answer: str, context: t.AssembledContext) -> t.StepChange:
        return {"text": answer}


class Choose(Write):
    """An agent for which one of two engines answers."""

    engines = {"quick": answers, "slow": answers}


class Judge(t.AgentStep[Draft, Verdict]):
    """An agent that gives a value."""

    output_type = Verdict
    engine = staticmethod(answers)

    def build_messages(self, state: Draft, context: t.AssembledContext) -> Sequence[t.Message]:
        return [t.Message(0, "user", state.text)]

    def apply(self, state: Draft, answer: Verdict, context: t.AssembledContext) -> t.StepChange:
        return {"score": state.score + int(answer.good)}


class Timed:
    """A component around turns."""

    async def around_turn(
        self, ctx: t.TurnContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        await call_next()


class Counted:
    """A component around calls."""

    async def around_call(
        self, task: t.Task, call_next: Callable[[t.Task], Awaitable[t.Answer]]
    ) -> t.Answer:
        return await call_next(task)


COMPONENTS: tuple[t.Component, t.TurnComponent, t.CallComponent] = (Timed(), Timed(), Counted())
SOURCES: Sequence[t.Source] = (
    t.from_state("topic"),
    t.from_literal("Be kind.", title="Style"),
    t.from_history(last=3),
)


def renewed(old: Mapping[str, object]) -> Draft:
    return Draft(topic=str(old["topic"]))


BESIDE: t.FlowSettings[Draft] = {"migrate": renewed}
SETTINGS: t.StepSettings[Draft] = {
    "retry": t.Retry(1, delay=0.0),
    "compensate": undo,
    "cache": t.Cache(60.0, shared=True),
}
SHARE: t.Sharing = {"priority": 2}
STEPS: Sequence[t.AnyStep[Draft]] = (outline, research, Count, Sign("Ann"), Write, Judge())
CODE: Sequence[t.CodeStep[Draft]] = (outline, research, Count)
FUNCTIONS: Sequence[t.StepFunction[Draft]] = (outline, research)
RUNNERS: tuple[t.StateRunner[Draft], t.ContextRunner[Draft]] = (Count(), Sign("Ann"))
PATHS: Sequence[t.AnyPath[Draft]] = (outline, [outline, t.complete()], t.Path(outline).complete())
END: t.Complete = t.complete()
NEXT: t.ApprovalRequest = t.escalate_to("boss")


def is_done(state: Draft) -> bool:
    return state.score > 0


def chooser(state: Draft) -> str:
    return "long" if state.score else "short"


def build() -> t.Flow[Draft]:
    """A flow with everything in it."""
    write = Write().labels("staff").best_of(2, longest).max_concurrency(2).with_engines(answers)
    judge = Judge().with_components(Counted())
    select = t.Selection(candidates=("quick", "slow"), category=t.Category(constant="text"))
    ending: t.Path[Draft] = t.Path(Count()).then(outline, name="outline again").complete()
    late = t.escalate_to("boss", options=[t.Option("approve"), "reject"], timeout=60.0)
    guards = t.Guards(
        budget=t.RunBudget(steps=100, cost=9.0, prices={"*": t.Price(input=1.0, output=2.0)}),
        loop_detection=t.LoopDetection(
            similarity=None, weights=t.Weights(), strategies=t.Strategies()
        ),
    )
    flow = (
        t.Flow("drafts", Draft, version="1", timeout=60.0, guards=guards, migrate=renewed)
        .start_with(outline)
        .then(research, compensate=undo, timeout=30.0, retry=t.Retry(1, delay=0.0))
        .then(write, context=SOURCES, budget=t.Budget(500), format=t.ContextFormat())
        .then(Choose, select=select)
        .then(judge, validate=(lambda state: bool(state.topic), "no topic"))
    )
    return (
        flow.branch(chooser, {"long": [Sign("Ann")], "short": ending}, otherwise=gather)
        .fork(
            t.Path[Draft]().then(Sign("Bob"), name="bob").on_failure(undo),
            t.Path[Draft]().then(Sign("Eve"), name="eve"),
            join=t.Path[Draft]().then(gather, name="gather all"),
        )
        .repeat_until(is_done, t.Path[Draft]().then(Count, name="raise"), max_iterations=3)
        .await_approval("ann", context=lambda state: state.text, on_timeout=late, timeout=60.0)
        .on_failure(undo)
        .finally_(Count, name="last")
    )


# Boards.


class Wins:
    """A provider of a program's own."""

    async def __call__(self, request: t.ContextRequest) -> t.ContextSlice:
        agent: t.AgentRef = request.agent
        run: t.RunRef = request.ctx.run
        transcript: t.Transcript = run.transcript
        return t.ContextSlice([{"agent": agent.name, "said": len(transcript)}])


async def pack(task: t.Task) -> t.Answer:
    (order,) = task.inputs
    label = t.Publication(Parcel(label=order.payload["item"]), tags={"packed"})
    return t.Answer("", artifacts=(label,), before=(t.Exchange("first"),))


def cheap(order: Order) -> bool:
    return order.price < 100


def is_labelled(parcel: Parcel) -> bool:
    return bool(parcel.label)


def gist(item: dict[str, object]) -> str:
    return f"{len(item)} fields"


PROVIDERS: Sequence[t.ContextProvider] = (
    Wins(),
    t.CompositeProvider(Wins(), t.DefaultCorrelationProvider(limit=3)),
    t.FilteredContextProvider(t.FilterConfig(types={"program.Order"})),
    t.RedactingProvider(Wins(), keys=["agent"]),
    t.StateDelegatingProvider(),
    t.SummaryProvider(Wins(), gist),
    t.TranscriptProvider(last=3),
)
SEEN_BY: Sequence[t.Visibility] = (
    t.Public(),
    t.Private({"packer"}),
    t.Labelled({"staff"}),
    t.Tenant("local"),
    t.Shared(),
)


async def trade(app: t.Loom) -> None:
    """Publish on a board, and read it."""
    board: t.Board = app.board("shop", variables={}, max_turns=20)
    packer: t.AgentBuilder = board.agent("packer").description("Packs.")
    packer.consumes(Order, where=cheap, tags=t.TagFilter(include={"new"}), priority=1)
    packer.publishes(Parcel, validate=is_labelled, visibility=SEEN_BY[0])
    packer.with_engines(pack).with_context(PROVIDERS[1], fallback=PROVIDERS[0])
    packer.with_components(Timed()).labels("staff").max_concurrency(2).prevent_self_trigger()
    reader = board.agent("reader").description("Reads.").tenant("local")
    reader.consumes(Parcel, join=None, batch=t.Batch(size=100)).with_tools(gist, max_rounds=1)
    reader.with_engines(answers).with_sources(t.from_state(lambda parcel: parcel.label))
    keeper = board.agent("keeper").description("Keeps.").best_of(2, longest)
    keeper.consumes(Order, Parcel, join=t.Join(by=lambda value: 1)).with_engines(answers)
    keeper.with_context_filter(filters=t.FilterConfig(limit=3))
    board.register(Verdict_)
    artifact: t.Artifact = await board.publish(Order(item="kettle"), tags={"new"})
    value: BaseModel = board.value("Order", {"item": "kettle"})
    assert value == Order(item="kettle")
    await board.publish_many([Order(item="lamp")], visibility=t.After(artifact.created_at))
    failed = await board.run_until_idle(raise_errors=False)
    assert failed is None, failed
    await board.run_until(lambda: True)
    made = await board.invoke("packer", Order(item="pan"), publish=False)
    assert_type(made, list[t.Artifact])
    items, _ = await board.query_artifacts(t.FilterConfig(types={"program.Parcel"}))
    assert_type(items, t.ArtifactItems)
    all_of_it = [each async for each in board.iter_artifacts(t.FilterConfig(), embed_meta=True)]
    assert_type(all_of_it, list[t.Artifact])
    handle: t.BoardHandle = board.read_as(t.Reader(labels={"staff"}))
    found, count = await handle.query_artifacts(embed_meta=True, count=True)
    envelopes = [each for each in found if isinstance(each, t.Envelope)]
    consumed: list[t.Consumption] = [one for each in envelopes for one in each.consumptions]
    summary: t.BoardSummary = await board.summary()
    assert (await handle.get(artifact.id)) == (await board.get(artifact.id))
    assert (await handle.summary()).total == summary.total == count and consumed
    assert_type(await board.resume(), list[str])
    try:
        await board.retry(t.ReactionFailed(str(artifact.run), 1, "packer", "no"), "packer")
    except t.UsageError:
        await board.cancel(reason="enough")
    await board.close()


@t.artifact_type(name="program.Verdict")
class Verdict_(BaseModel):
    """A type that no agent declares."""


# Runs, their events, outcomes, explanations and history.


def words(event: t.RunEvent) -> str:
    """Events narrow by their kind."""
    if event.kind == "turn.started":
        assert_type(event.data, TurnStarted)
        return event.data.agent
    if event.kind == "question.asked":
        return event.data.question
    return event.kind


def ended(end: t.RunEnd) -> str:
    """Ends narrow as well."""
    match end.data:
        case RunFinished(reason=reason):
            return reason
        case other:
            return other.kind


def envelope(event: t.Event[str, object]) -> str:
    """Every event is an envelope."""
    return f"{event.seq} {event.kind} by {event.actor}"


def heard(delta: t.Delta) -> None:
    """Deltas are pieces of answers."""
    assert delta.text


def told(explanation: t.Explanation) -> str:
    """Explanations say themselves."""
    return str(explanation)


def segments(context: t.AssembledContext) -> list[str]:
    """What an agent step is shown, by its kind."""
    withheld: Sequence[t.Withheld] = context.withheld
    found = [f"{each.reason}" for each in withheld]
    for segment in context.segments:
        match segment:
            case t.StateSegment() | t.LiteralSegment() | t.RetrievalSegment():
                found.append(segment.content)
            case t.ArtifactSegment(artifacts=artifacts):
                shown: Sequence[t.ShownArtifact] = artifacts
                found.append(f"{len(shown)}")
            case t.VariableSegment(variables=variables):
                values: Sequence[t.ShownVariable] = variables
                found.append(f"{len(values)}")
            case t.HistorySegment(summary=summary):
                whole: t.HistorySummary | None = summary
                found.append("" if whole is None else whole.content)
    return found


async def draft(app: t.Loom) -> None:
    """Run the flow, answer its question, and explain what happened."""
    flow = build()
    problems: Sequence[t.Diagnostic] = flow.check()
    assert not [each for each in problems if each.severity == "error"], problems
    assert flow.to_mermaid().startswith("flowchart")
    app.register_flow(flow)
    run = await app.start(flow, Draft(topic="kettles"), user_id="ann")
    assert_type(run, t.Run[Draft])
    with run.listening(heard):
        outcome = await run.outcome()
    assert_type(outcome, t.Outcome[Draft])
    assert_type(outcome.status, t.OutcomeStatus)
    questions: list[t.Question] = await run.questions()
    question: t.Question | None = await run.question(user_id="ann")
    assert outcome.status == "waiting" and question is not None, outcome
    assert (*questions,) == outcome.questions
    delivery: t.Delivery = await run.answer(question.id, {"decision": "approve"})
    assert_type(await run.not_undone(), list[StepCompensated])
    end = await run.finished()
    holder: t.Holder | None = await run.holder()
    assert holder is None or holder.process, holder
    assert_type(end, t.RunEnd)
    assert delivery and ended(end), end
    seen = [words(event) async for event in run.events()]
    assert "run.finished" in seen
    plan: t.StoredPlan | None = await run.plan()
    assert plan is not None and not await run.cancel(by="ann", reason="late")
    handle = app.handle(run.id)
    assert_type(handle, t.Run[BaseModel])
    try:
        fork = await run.fork(2, values={}, folder=None, tools="recorded", by="ann")
        assert_type(fork, t.Run[Draft])
        await handle.retry("no such step", folder=None, budget={"tokens": 10_000}, by="ann")
    except t.UsageError:
        pass
    assert isinstance((await (await app.resume(run.id)).outcome()).state, Draft)
    await explained(app, run.id)


async def explained(app: t.Loom, run: str) -> None:
    """Explanations have exact types."""
    explain: t.Explanations = app.explain
    history: t.History = app.history
    events = await history.events(run)
    assert [envelope(event) for event in events]
    turn = await explain.turn(run, 1)
    assert_type(turn, t.TurnExplained)
    assert await explain.turn(run, 1, agent=turn.agent) == turn
    assert_type(await explain.diff(run, 1, 1, other_run=run, agent=turn.agent), t.TurnDiff)
    assert_type(await explain.blame(run, "no such text"), t.BlameExplained)
    with suppress(t.UsageError):
        assert_type(await explain.what_if(run, 1, 1, 0.5), t.WhatIf)
    assert_type(await explain.cost(run), t.Cost | None)
    timeline = await explain.timeline(run)
    assert_type(timeline, t.Timeline)
    assert_type(await explain.page(run), str)
    variable = await explain.variable(run, "user_id", at=3)
    assert_type(variable, t.VariableExplained)
    state = await history.state(run, at=3)
    assert_type(state, t.StateExplained)
    assert str(state) and (await history.state(run)).strands
    (branch,) = [event for event in events if event.kind == "branch.taken"]
    route: t.RouteExplanation = await explain.route(run, branch.seq)
    match route:
        case t.FlowRouteExplained():
            assert told(route)
        case t.RouteExplained() | t.OfferExplained() | t.ConsumptionExplained():
            raise AssertionError(route)
    verified: list[t.VerifiedRun] = [each async for each in history.verify(run)]
    assert verified[0].events == len(events) and not verified[0].problems
    old: list[t.PrunedRun] = []
    with suppress(t.UsageError):  # what is in memory cannot be pruned
        old += [each async for each in history.prune("30d", dry_run=True)]
    assert not old
    replay = await history.replay(run)
    assert_type(replay, t.Replay)
    assert replay.divergence is None and replay.same == len(events) and str(replay)
    backtest = await history.backtest(build(), [run])
    assert assert_type(backtest, t.Backtest).rate("route").runs == 0
    definition: t.Definition = await history.definition(run)
    assert definition.name == "drafts" and definition.to_mermaid()
    engines: Mapping[str, tuple[t.Engine, ...]] = definition.engines
    assert engines and told(timeline) and told(turn) and told(variable)
    summaries: list[t.RunSummary] = await app.runs(1, before=None, unfinished=False)
    choice: t.RunChoice = {"status": "finished"}
    summaries += await app.runs(1, **choice)
    assert await history.named(run, 1) == [run]
    assert summaries and summaries[0].status


async def fails(app: t.Loom) -> None:
    """A failure carries what became of the run."""

    def breaks(state: Draft) -> None:
        raise ValueError(state.topic)

    try:
        outcome = await app.run(t.Flow("broken", Draft).start_with(breaks), Draft(topic="x"))
        assert_type(outcome, t.Outcome[Draft])
    except t.FlowFailed as failed:
        assert_type(failed.outcome, t.Outcome[BaseModel])
        failure = failed.outcome.failure
        assert failure is not None and failure.error == "ValueError"


async def search(app: t.Loom) -> None:
    """Collections are registered, filled and searched."""
    given: t.VectorSearch = InMemorySearch()
    app.register_collection(Library, given)
    library = app.collection(Library)
    added: t.AddedDocuments = await library.add([t.Document("k", "Kettles boil.")])
    results = await library.search("kettles", top_k=1, min_relevance=0.0)
    found: Sequence[t.RetrievalResult] = t.RetrievalResults(results)
    assert added and [each.content for each in found]
    theirs = app.collection(Library, app_id="acme")
    assert_type(theirs, t.VectorSearch)
    shared = t.Document("t", "Teapots pour.", visibility=t.Shared())
    assert (await theirs.add([shared])).added == 1 and await theirs.remove(["k"]) == 0
    assert await library.remove(["t"]) == 0 and await library.remove(["t"], "acme") == 1
    sources: Sequence[object] = (
        t.from_retrieval(Library, query=lambda state: state.topic, top_k=2, **SHARE),
        t.from_variables("tone"),
        t.from_provider(Wins()),
    )
    kinds = (t.RetrievalSource, t.VariableSource, t.ProviderSource)
    assert [isinstance(each, kind) for each, kind in zip(sources, kinds, strict=True)]
    others = (t.StateSource, t.LiteralSource, t.HistorySource)
    assert [isinstance(each, kind) for each, kind in zip(SOURCES, others, strict=True)]


class Watch:
    """An observer of the app."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def observe(self, event: t.RunEvent, run: t.ObservedRun) -> None:
        self.kinds.append(f"{run.id}: {event.kind}")


@t.derivation
def loud(context: Mapping[str, object]) -> object:
    """A derivation of a program's own."""
    return context.get("tone") or t.UNCHANGED


async def ask(context: t.Context) -> str:
    """A tool that asks a person."""
    try:
        return str(await t.use_ui_tool("confirm", {"tone": context["tone"]}))
    except t.QuestionExpired:
        return "late"


def schema(task: t.Task) -> list[str]:
    """What an engine is told of tools and outputs."""
    wanted: t.OutputSchema | None = task.output
    tools: Sequence[t.ToolSchema] = task.tools
    calls = [call for exchange in task.exchanges for call in exchange.calls]
    results = [each for exchange in task.exchanges for each in exchange.results]
    typed: tuple[list[t.ToolCall], list[t.ToolResult]] = (calls, results)
    return [each.name for each in tools] + [str(wanted), str(typed)]


ERRORS: tuple[type[t.TurnloomError], ...] = (
    *(t.ArtifactExists, t.BoardError, t.BudgetExceeded, t.CollectionUnavailable, t.Conflict),
    *(t.ContextTooLarge, t.ContextUnavailable, t.DefinitionError, t.DocumentsUnavailable),
    *(t.EngineError, t.FlowError, t.InvalidArtifact, t.InvalidUpdate, t.LeaseLost),
    *(t.LogDamaged, t.LogError, t.LoopDetected, t.LoopLimit, t.MissingContext),
    *(t.NoCandidates, t.NotYours),
    *(t.PlanChanged, t.PredicateFailed, t.RunBusy, t.StoreUnavailable, t.ToolServerError),
    *(t.UnknownFlow,),
    *(t.UnknownKind, t.UnknownRun, t.UnknownType, t.WorkflowGone, t.WriteRefused),
)


async def main() -> None:
    """Do all of it."""
    watch = Watch()
    observers: Sequence[t.Observer] = (watch,)
    settings: t.LoomSettings = {"store": "memory", "engine": answers, "observers": observers}
    async with t.Loom(**settings) as app:
        await draft(app)
        await fails(app)
        await search(app)
        await trade(app)
        with tempfile.TemporaryDirectory() as folder:
            try:
                await app.start(FilePath(folder), user_id="ann", app_id="acme")
            except t.DefinitionError:
                indexes: list[t.LookupIndex] = []
                try:
                    indexes += [index async for index in app.index(FilePath(folder))]
                except t.TurnloomError as error:
                    assert not indexes and error.code
    await app.aclose()
    assert watch.kinds and ERRORS


if __name__ == "__main__":
    asyncio.run(main())
