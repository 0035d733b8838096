"""A model picks who speaks next."""

from collections.abc import Mapping, Sequence

from turnloom.agents.events import ModelCalled, ModelFailed, SpeakerPicked
from turnloom.agents.logic.answers import answered_by, check_making
from turnloom.agents.logic.outputs.reading import read_output
from turnloom.agents.logic.trouble import without_keys
from turnloom.agents.spec import SELECTOR, Agent, Answer, OutputSchema, Task
from turnloom.assembly.logic import COUNTER, estimate
from turnloom.assembly.spec import Transcript
from turnloom.errors import BudgetExceeded, ContextTooLarge, EngineError
from turnloom.guards.logic.windows import HISTORY, CallSize, told_size
from turnloom.kernel.contained import named
from turnloom.kernel.digests import chain
from turnloom.kernel.values import Json, as_data, as_object, is_text, preview, said
from turnloom.log.spec import Fact
from turnloom.runs.actions import Pick
from turnloom.runtime.service.components import around_calls
from turnloom.runtime.service.engines import ask_engine
from turnloom.runtime.service.guarding import begin_model_call, end_model_call, in_time
from turnloom.runtime.service.journal import Diverged, Journal
from turnloom.runtime.service.live import Means
from turnloom.runtime.service.windows import heed_window, window_of
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.types import is_json

# How many characters of an agent's instructions tell the selector what the agent is for.
BRIEF = 200

# What the selector is shown beside what was said, and what helps when that is too much.
BRIEFS = "who can be picked"
REMEDY = (
    "A selector is shown all that was said. Declare handoffs that decide who speaks next, or name "
    "a model with a larger window."
)


async def pick(journal: Journal, loaded: Loaded, decision: Pick, means: Means) -> None:
    """Ask the selector, with components around the call, and put on record whom it picked, or that
    it could not."""
    task = _task(journal, loaded, decision)
    history, selector = journal.state.history, loaded.selector
    told = estimate(task.system)
    size = CallSize(history.tokens + told, COUNTER, {HISTORY: history.tokens, BRIEFS: told})

    async def effect() -> Sequence[Fact]:
        try:
            if window := window_of(selector, task.model, means.window):
                await heed_window(journal, f"{decision.id}/window", task, size, window)
            around = around_calls(means.components, selector) if selector else None
            asking = ask_engine(around, task) if around else None
            answer = _checked(await in_time(journal, decision.id, asking) if asking else Answer())
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is recorded
            message = without_keys(said(error))
            if isinstance(error, ContextTooLarge):
                message = f"{message} {told_size(size)} {REMEDY}"
            return (ModelFailed(task.turn, SELECTOR, named(error), message),)
        raw = answer.text or as_data(answer.output)
        answered = answered_by(task, answer, raw=raw)
        return answered, _outcome(task.turn, _named(answer), decision.among)

    intent = ModelCalled(
        chain(task.system, history.digest), task.turn, SELECTOR, type(selector).__name__
    )
    try:
        begin_model_call(journal, decision.id, task.model, size.tokens)
        facts = await journal.once(decision.id, effect, intent=intent)
        end_model_call(journal, decision.id, task.model, facts)
    except BudgetExceeded:
        return  # on record, and the run fails
    except Diverged as error:
        fact = ModelFailed(task.turn, SELECTOR, "Diverged", str(error))
        journal.complete(decision.id, [fact])


def _task(journal: Journal, loaded: Loaded, decision: Pick) -> Task:
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
        f"{state.run}/{decision.id}",
        _told({name: _brief(agents.get(name)) for name in decision.among}),
        Transcript(state.messages),
        (),
        OutputSchema("NextSpeaker", schema),
        (),
        loaded.model,
    )


def _told(briefs: Mapping[str, str]) -> str:
    told = "\n".join(f"- {name}: {brief}" for name, brief in briefs.items())
    return f'Pick who speaks next. Answer {{"agent": NAME}} with one of these names:\n{told}'


def _brief(agent: Agent | None) -> str:
    """What an agent is for; who is no agent is the user."""
    text = " ".join(agent.instructions.split()) if agent else "the person who is served"
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"


def _checked(answer: Answer) -> Answer:
    """The answer, if it can be written down.

    Raises:
        EngineError: it is none.
    """
    if type(answer) is not Answer or not is_text(answer.text) or not is_json(answer.output):
        raise EngineError(f"The selector gave {preview(answer)}, not an Answer with a text.")
    check_making("The selector", answer)
    return answer


def _named(answer: Answer) -> Json:
    """The name that an answer gives: in its output, or in its text as data or in plain words."""
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
