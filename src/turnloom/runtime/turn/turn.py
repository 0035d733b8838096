"""Take a turn."""

from collections.abc import Callable, Sequence
from functools import partial

from turnloom.agents.events import TurnFinished, TurnStarted
from turnloom.agents.spec import Component
from turnloom.guards.events import LoopChecked
from turnloom.guards.logic.loops import detect, digest_turn, needs_similarity, recover, similarity
from turnloom.guards.spec import LoopDetection, TurnDigest
from turnloom.kernel.contained import error_name
from turnloom.kernel.values import error_text
from turnloom.log.spec import Fact
from turnloom.runs.brief import Brief, Settlement, Sinks, TurnOutcome
from turnloom.runtime.around.components import around_turn, every_component
from turnloom.runtime.around.guards import end_turn
from turnloom.runtime.around.hooks import HookRunner
from turnloom.runtime.around.message_hooks import MessageHooks
from turnloom.runtime.around.selection import Selections
from turnloom.runtime.journal import Journal
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.runtime.turn.answer import TurnAnswers
from turnloom.runtime.turn.context import Gatherer
from turnloom.runtime.turn.frames import TurnFrames
from turnloom.runtime.world import RecordedFailure


async def check_turn(journal: Journal, loaded: LoadedWorkflow, brief: Brief) -> None:
    """Compare a turn that is about to end with those before it, and react to a loop."""
    detection, state = journal.guards.loop_detection, journal.state
    if detection is None:
        return
    before, number = state.guards.entries, brief.turn
    turn = state.open[number]
    inputs = [each.payload for each in brief.inputs]
    facts = [event.data for event in turn.recorded.values()]
    entry = digest_turn(number, turn.agent, facts, inputs, before=before)
    entries = [*before, entry]
    others = journal.workflow.alternatives(state)

    async def effect() -> Sequence[Fact]:
        return (await _checked(detection, entries, loaded),)

    key = f"t{number}/loop"
    if journal.outcome(key):
        return
    checked = (await journal.perform(key, effect))[0]
    assert isinstance(checked, LoopChecked)
    verdict = detect(detection, entries, checked.similarity)
    found = [recover(detection, state.guards, verdict, others)] if verdict.is_loop else []
    journal.complete(key, [checked, *found])


async def _checked(
    detection: LoopDetection, entries: Sequence[TurnDigest], loaded: LoadedWorkflow
) -> LoopChecked:
    """The last turn, and how similar the outputs are, if that has to be known."""
    latest, embedder = entries[-1], loaded.embedder
    if embedder is None or not needs_similarity(detection, entries):
        return LoopChecked(latest)
    name = f"{embedder.name}@{embedder.version}"
    try:
        vectors = await embedder.embed([each.output for each in entries[-detection.window :]])
        return LoopChecked(latest, similarity(vectors), name)
    except Exception as error:  # noqa: BLE001 - recorded: the similarity is unknown
        return LoopChecked(latest, None, name, f"{error_name(error)}: {error_text(error)}")


class Turns:
    """Takes the turns of one run. `components` wrap those of every agent, outermost; `window` is
    the context window of every model in tokens, if a setting gives it."""

    def __init__(
        self,
        journal: Journal,
        loaded: LoadedWorkflow,
        hooks: HookRunner,
        gatherer: Gatherer,
        selections: Selections,
        components: Sequence[Component] = (),
        window: int = 0,
    ) -> None:
        messages = MessageHooks(journal, loaded.message_hooks)
        sights = TurnFrames(journal, loaded)
        around = partial(every_component, components, loaded.staff)
        self._components: Callable[[str], Sequence[Component]] = around
        self._answering = TurnAnswers(
            journal, loaded, sights, gatherer, messages=messages, components=around, window=window
        )
        self._journal = journal
        self._loaded = loaded
        self._gatherer = gatherer
        self._hooks = hooks
        self._selections = selections
        self._hooked = bool(journal.workflow.hooks)
        self._watched = loaded.guards.loop_detection is not None

    async def take(self, brief: Brief, sinks: Sinks) -> Settlement:
        """Take a turn: hooks, context, the frame, the answer with its tools, hooks.

        Entered again after a kill or an answer, it finds in the log what was done before.

        Raises:
            Waiting: a person was asked.
        """
        number, agent = brief.turn, brief.agent
        self._journal.keep(f"t{number}", lambda: TurnStarted(number, agent))
        answering = self._answer if brief.timeout is None else self._in_time
        outcome = await answering(brief, sinks)
        settlement = await brief.settle(outcome)
        await self._journal.world.reach(f"t{number}")
        for id, fact, actor in settlement.facts:
            self._journal.keep(id, lambda fact=fact: fact, actor)
        await self.end(brief, outcome, settlement)
        if self._journal.per_turn:
            await self._journal.commit()
        return settlement

    async def end(self, brief: Brief, outcome: TurnOutcome, settlement: Settlement) -> None:
        """Record how a turn ended, and what that says of an agent that was selected for it."""
        number, agent = brief.turn, brief.agent
        failed = bool(outcome.error) or settlement.error is not None
        judged = await self._selections.judge(brief, outcome, failed=failed)
        if judged:
            await self._journal.world.reach(f"t{number}")
        end_turn(self._journal, number)
        status = "failed" if outcome.error else "done"
        finished = TurnFinished(number, agent, status, outcome.error)
        self._journal.keep(f"t{number}/end", lambda: finished)
        for place, fact in enumerate(judged):
            self._journal.record(f"t{number}/judged.{place}", fact)

    async def _in_time(self, brief: Brief, sinks: Sinks) -> TurnOutcome:
        """The agent's answer, within the timeout of the brief."""
        try:
            async with self._journal.world.deadline(f"t{brief.turn}", brief.timeout):
                return await self._answer(brief, sinks)
        except TimeoutError:
            late = TimeoutError(f"It took over {brief.timeout:g} s.")
            return TurnOutcome(f"TimeoutError: {late}", cause=late)

    async def _answer(self, brief: Brief, sinks: Sinks) -> TurnOutcome:
        """The answer, with hooks, components and loop detection around it."""
        number, agent = brief.turn, brief.agent
        if self._hooked:
            await self._hooks.before_agent(number, agent)
        components, sinks = self._components(agent), brief.listen(sinks)
        answer = partial(self._answering.answer, brief, sinks)
        try:
            if components:
                answer = partial(around_turn, components, self._gatherer.turn(brief), answer)
            outcome = await self._journal.world.answer(f"t{number}", answer)
        except RecordedFailure as failure:
            outcome = TurnOutcome(failure.error)
        finally:
            self._gatherer.close(number)
        if self._hooked:
            await self._hooks.after_agent(number, agent)
        if self._watched:
            await check_turn(self._journal, self._loaded, brief)
        return outcome
