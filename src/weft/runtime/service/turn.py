"""One way to take a turn."""

from collections.abc import Mapping, Sequence

from weft.agents.events import (
    AgentText,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    TurnFinished,
    TurnStarted,
)
from weft.agents.logic import view_of
from weft.agents.spec import Answer, Engine, Task
from weft.assembly.events import FrameAssembled
from weft.assembly.logic import View, frame, system_text
from weft.assembly.spec import Transcript
from weft.errors import EngineError
from weft.kernel.values import is_text, preview, said
from weft.log.spec import Fact
from weft.runtime.service.journal import Diverged, Journal
from weft.variables.logic.exposure import names_of


async def take_turn(journal: Journal, engines: Mapping[str, Engine], agent: str) -> TurnFinished:
    """An agent's go: record the frame, show it to the engine, record the answer.

    Entered again after a kill, it finds on record what was done and goes on from there.
    """
    state = journal.state
    number = state.open.number if state.open else state.turns + 1
    key = f"t{number}"
    journal.keep(key, lambda: TurnStarted(number, agent))
    shown = journal.keep(f"{key}/frame", lambda: _assemble(journal, number, agent))
    task = _open(journal, shown, f"{key}/model")
    facts = await _ask(journal, engines[agent], task, shown.digest)
    failed = next((fact for fact in facts if isinstance(fact, ModelFailed)), None)
    if failed is None:
        return journal.keep(f"{key}/end", lambda: TurnFinished(number, agent))
    error = f"{failed.error}: {failed.message}"
    return journal.keep(f"{key}/end", lambda: TurnFinished(number, agent, "failed", error))


def _assemble(journal: Journal, number: int, agent: str) -> FrameAssembled:
    state = journal.state
    shown = _view(journal, agent)
    seen = state.views.get(shown.digest)
    as_in = seen[0] if seen else 0
    return frame(number, agent, shown, state.history, as_in, state.texts)


def _view(journal: Journal, agent: str) -> View:
    """The agent's view, made anew only when a value changed since it was last made."""
    revision = journal.state.revision
    kept = journal.views.get(agent)
    if kept is not None and kept[0] == revision:
        return kept[1]
    workflow = journal.workflow
    made = view_of(workflow.agents[agent], workflow.variables, journal.state)
    journal.views[agent] = (revision, made)
    return made


def _open(journal: Journal, shown: FrameAssembled, key: str) -> Task:
    """The recorded frame as an engine is given it."""
    state = journal.state
    return Task(
        state.run,
        shown.agent,
        shown.turn,
        state.turns_of.get(shown.agent, 0) + 1,
        f"{state.run}/{key}",
        _revealed(journal, shown),
        Transcript(state.messages, shown.history.count),
    )


def _revealed(journal: Journal, shown: FrameAssembled) -> str:
    """The system text with the secrets put in that are exposed to this agent."""
    text = _system(journal, shown)
    exposure = journal.workflow.variables.exposures.get(shown.agent)
    if exposure is None or not journal.secrets:
        return text
    return journal.secrets.reveal(text, names_of(exposure))


def _system(journal: Journal, shown: FrameAssembled) -> str:
    """The system text that a recorded frame shows."""
    kept = journal.views.get(shown.agent)
    if kept is not None and kept[1].digest == shown.view:
        return kept[1].text
    state = journal.state
    return system_text(state.views[shown.view][1], state.texts)


async def _ask(journal: Journal, engine: Engine, task: Task, request: str) -> Sequence[Fact]:
    async def effect() -> Sequence[Fact]:
        try:
            answer = await engine(task)
            return _interpret(journal, task, answer)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is recorded
            return (ModelFailed(task.turn, task.agent, type(error).__name__, said(error)),)

    intent = ModelCalled(request, task.turn, task.agent, type(engine).__name__)
    try:
        return await journal.once(f"t{task.turn}/model", effect, intent=intent)
    except Diverged as error:
        return (ModelFailed(task.turn, task.agent, "Diverged", str(error)),)


def _interpret(journal: Journal, task: Task, answer: Answer) -> Sequence[Fact]:
    """What the run makes of an answer."""
    if type(answer) is not Answer or not is_text(answer.text):
        given = preview(answer)
        raise EngineError(f"The engine of {task.agent!r} gave {given}, not an Answer with a text.")
    answered = ModelAnswered(task.turn, task.agent, answer.usage)
    if not answer.text:
        return (answered,)
    hidden = journal.workflow.triggers.hides(task.agent, answer.text)
    return answered, AgentText(task.turn, task.agent, answer.text, hidden)
