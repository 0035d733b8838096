"""Conversations at run time: turns of a talk, and who speaks next."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from turnloom.agents.events import ChanceDrawn, ModelCalled, ModelFailed, SpeakerPicked
from turnloom.agents.logic.answers import answered_by, check_making
from turnloom.agents.logic.model_errors import without_keys
from turnloom.agents.logic.outputs.reading import read_output
from turnloom.agents.spec import (
    SELECTOR,
    Agent,
    Answer,
    Engine,
    OutputSchema,
    PreparedRequest,
    Task,
)
from turnloom.assembly.logic import COUNTER, estimate
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import ChosenProvider, Transcript
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import Artifact
from turnloom.conversation.spec import ConversationState
from turnloom.errors import BudgetExceeded, ContextTooLarge, EngineError
from turnloom.guards.logic.windows import HISTORY, CallSize, describe_size
from turnloom.kernel.contained import error_name
from turnloom.kernel.digests import chain_digest
from turnloom.kernel.values import Json, as_data, as_object, error_text, is_text, preview
from turnloom.log.spec import Fact
from turnloom.runs.actions import Action, Draw, Pick, Select, Work
from turnloom.runs.brief import (
    UNSETTLED,
    Brief,
    Choice,
    DeclaredContexts,
    Settlement,
    Sinks,
    TurnOutcome,
    contexts_of,
)
from turnloom.runtime.agent_turns import AgentTurns
from turnloom.runtime.around.components import around_calls
from turnloom.runtime.around.guards import (
    begin_model_call,
    end_model_call,
    heed_window,
    in_time,
    window_of,
)
from turnloom.runtime.around.selection import ChoiceRequest
from turnloom.runtime.drive.live import LiveRun, RunResources
from turnloom.runtime.engine_calls import Retries, ask_engine
from turnloom.runtime.journal import Diverged, Journal
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.runtime.user_code import ReadOnlyValues
from turnloom.variables.logic.types import is_json

# Characters of an agent's instructions shown to the selector.
BRIEF = 200

# The parts of the selector's prompt apart from the messages, and the remedy if it is too large.
BRIEFS = "who can be picked"
REMEDY = (
    "A selector is shown all that was said. Declare handoffs that decide who speaks next, or name "
    "a model with a larger window."
)


async def pick(
    journal: Journal, loaded: LoadedWorkflow, decision: Pick, means: RunResources
) -> None:
    """Ask the selector, with components around the call, and record whom it picked, or that it
    failed."""
    history, selector = journal.state.history, loaded.selector
    task = _task(journal, loaded, decision)
    retries = Retries(journal, decision.id, task, type(selector).__name__)
    task = msgspec.structs.replace(task, retry=retries.note)
    briefs = estimate(task.system)
    size = CallSize(history.tokens + briefs, COUNTER, {HISTORY: history.tokens, BRIEFS: briefs})

    async def effect() -> Sequence[Fact]:
        try:
            if window := window_of(selector, task.model, means.window):
                await heed_window(journal, f"{decision.id}/window", task, size, window=window)
            around = around_calls(means.components, selector) if selector else None
            asking = ask_engine(around, task) if around else None
            answer = _checked(await in_time(journal, decision.id, asking) if asking else Answer())
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is recorded
            message = without_keys(error_text(error))
            if isinstance(error, ContextTooLarge):
                message = f"{message} {describe_size(size)} {REMEDY}"
            return (ModelFailed(task.turn, SELECTOR, error_name(error), message),)
        finally:
            retries.end()
        raw = answer.text or as_data(answer.output)
        answered = answered_by(task, answer, raw=raw)
        return answered, _outcome(task.turn, _named(answer), decision.among)

    intent = ModelCalled(
        chain_digest(task.system, history.digest), task.turn, SELECTOR, type(selector).__name__
    )
    try:
        begin_model_call(journal, decision.id, task.model, size.tokens)
        facts = await journal.once(decision.id, effect, intent=intent)
        end_model_call(journal, decision.id, task.model, facts)
    except BudgetExceeded:
        return  # recorded, and the run fails
    except Diverged as error:
        fact = ModelFailed(task.turn, SELECTOR, "Diverged", str(error))
        journal.complete(decision.id, [fact])


def _task(journal: Journal, loaded: LoadedWorkflow, decision: Pick) -> Task:
    state, agents = journal.state, journal.workflow.agents
    schema = {
        "type": "object",
        "properties": {"agent": {"enum": list(decision.among)}},
        "required": ["agent"],
        "additionalProperties": False,
    }
    return Task(
        state.run,
        SELECTOR,
        state.turns,
        state.calls_of.get(SELECTOR, 0) + 1,
        key=f"{state.run}/{decision.id}",
        system=_judge_prompt(decision.choices)
        if decision.choices
        else _selector_prompt({name: _brief(agents.get(name)) for name in decision.among}),
        transcript=Transcript(state.messages),
        tools=(),
        output=OutputSchema("NextSpeaker", schema),
        exchanges=(),
        model=loaded.model,
    )


def _selector_prompt(briefs: Mapping[str, str]) -> str:
    listed = "\n".join(f"- {name}: {brief}" for name, brief in briefs.items())
    return f'Pick who speaks next. Answer {{"agent": NAME}} with one of these names:\n{listed}'


def _judge_prompt(choices: Mapping[str, str]) -> str:
    listed = "\n".join(f"- {name}: {words}" for name, words in choices.items())
    return (
        "Judge the user's last message: which of these handoffs applies? "
        f'Answer {{"agent": NAME}} with one of these names:\n{listed}'
    )


def _brief(agent: Agent | None) -> str:
    """The purpose of an agent; any other name is the user."""
    text = " ".join(agent.instructions.split()) if agent else "the person who is served"
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"


def _checked(answer: Answer) -> Answer:
    """The answer, if it is one.

    Raises:
        EngineError: it is none.
    """
    if type(answer) is not Answer or not is_text(answer.text) or not is_json(answer.output):
        raise EngineError(f"The selector gave {preview(answer)}, not an Answer with a text.")
    check_making("The selector", answer)
    return answer


def _named(answer: Answer) -> Json:
    """The name in an answer: in its output, or in its text, as data or in plain words."""
    output: Json = answer.output
    if output is None:
        try:
            output = read_output(answer.text)
        except ValueError:
            return answer.text.strip()
    return (as_object(output) or {}).get("agent", output)


def _outcome(turn: int, name: Json, among: tuple[str, ...]) -> Fact:
    if name in among:
        return SpeakerPicked(among, name)
    message = f"The selector answered {preview(name)}, not one of {', '.join(among)}."
    return ModelFailed(turn, SELECTOR, EngineError.__name__, message)


class TalkRuntime(AgentTurns):
    """The acting half of a conversation, for one run."""

    async def act(self, action: Action) -> Action | None:
        """Let chance, a model or a guard choose the next speaker."""
        match action:
            case Draw(id=id, among=among):
                await self._draw(id, among)
            case Pick():
                await pick(self._journal, self._live.loaded, action, self._live.means)
            case Select(id=id, agent=meant):
                selection = self._live.selections.own
                assert selection is not None
                values = ReadOnlyValues(self._journal.state.values)
                wanted = ChoiceRequest(selection.candidates, values, meant)
                await self._live.selections.choose(id, selection, wanted)
            case _:
                raise AssertionError(f"a conversation does not decide on {action!r}")
        return None

    async def _draw(self, id: str, among: tuple[str, ...]) -> None:
        async def effect() -> Sequence[Fact]:
            return (ChanceDrawn(among, among[self._live.means.entropy.below(len(among))]),)

        (drawn,) = await self._journal.perform(id, effect)
        await self._journal.put(id, drawn)

    def brief(self, work: Work) -> Brief:
        """The brief of a turn."""
        return TalkBrief(self._live, work)


class TalkBrief:
    """The brief of a turn that answers the messages of the run."""

    inputs: tuple[Artifact, ...] = ()
    hears_history = True
    applies_context = False
    timeout: float | None = None
    engines: tuple[Engine, ...] | None = None

    def __init__(self, live: LiveRun, work: Work) -> None:
        self.turn = work.turn
        self.agent = work.agent
        self._state = live.journal.state
        self.correlation = self._state.run  # the correlation of a conversation is its run's id
        self._selection = live.selections.own

    @property
    def about(self) -> Any:
        """The variables of the run."""
        return self._state.values

    @property
    def choice(self) -> Choice | None:
        """The guard's selection, if it chose this agent."""
        floor: ConversationState = self._state.progress
        if self._selection is None or floor.selected != self.agent:
            return None
        return Choice(self._selection, (floor.category,), self.agent)

    def contexts(self, agent: DeclaredContexts) -> Sequence[ChosenProvider | Assembly | None]:
        """The provider of each engine, else the agent's."""
        return contexts_of(agent, agent.context)

    async def request(
        self, prepared: PreparedRequest, context: AssembledContext
    ) -> PreparedRequest:
        """The request as message hooks prepared it."""
        return prepared

    def listen(self, sinks: Sinks) -> Sinks:
        """No other listeners."""
        return sinks

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """Settle nothing: the messages are already recorded."""
        return UNSETTLED
