"""A model picks who speaks next."""

from collections.abc import Iterable, Sequence

from weft.agents.events import ModelAnswered, ModelCalled, ModelFailed, SpeakerPicked
from weft.agents.spec import SELECTOR, Agent, Answer, OutputSchema, Pick, Task
from weft.assembly.spec import Transcript
from weft.errors import EngineError
from weft.kernel.digests import chain
from weft.kernel.values import Json, as_object, preview, said
from weft.log.spec import Fact
from weft.runtime.service.journal import Diverged, Journal
from weft.runtime.spec import Loaded

# How many characters of an agent's instructions tell the selector what the agent is for.
BRIEF = 200


async def pick(journal: Journal, loaded: Loaded, decision: Pick) -> None:
    """Ask the selector, and put on record whom it picked, or that it could not."""
    task = _task(journal, loaded, decision)

    async def effect() -> Sequence[Fact]:
        try:
            answer = await loaded.selector(task) if loaded.selector else Answer()
            picked = _picked(answer, decision.among)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is recorded
            return (ModelFailed(task.turn, SELECTOR, type(error).__name__, said(error)),)
        answered = ModelAnswered(task.turn, SELECTOR, answer.usage, (), answer.text)
        return answered, SpeakerPicked(decision.among, picked)

    request = chain(task.system, journal.state.history.digest)
    intent = ModelCalled(request, task.turn, SELECTOR, type(loaded.selector).__name__)
    try:
        await journal.once(decision.id, effect, intent=intent)
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
        _told(agents[name] for name in decision.among),
        Transcript(state.messages),
        (),
        OutputSchema("NextSpeaker", schema),
        (),
        loaded.model,
    )


def _told(agents: Iterable[Agent]) -> str:
    lines = (f"- {agent.name}: {_brief(agent)}" for agent in agents)
    told = "\n".join(lines)
    return f'Pick who speaks next. Answer {{"agent": NAME}} with one of these agents:\n{told}'


def _brief(agent: Agent) -> str:
    text = " ".join(agent.instructions.split())
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"


def _picked(answer: Answer, among: Sequence[str]) -> str:
    """The agent that an answer names.

    Raises:
        EngineError: it names none of them.
    """
    output: Json = as_object(answer.output) or {}
    name = output.get("agent", answer.text.strip())
    if name not in among:
        raise EngineError(f"The selector answered {preview(name)}, not one of {', '.join(among)}.")
    return name
