"""Flows as tests have them: a state, and steps that leave a note."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    Flow,
    FlowFailed,
    Loom,
    Outcome,
    StepContext,
    Task,
    append,
    merge,
)

# Seconds within which everything that a test waits for happens.
SOON = 60.0


class Work(BaseModel):
    """What most flows here are about."""

    model_config = ConfigDict(frozen=True)

    number: int = 0
    text: str = ""
    notes: Annotated[list[str], append] = []
    counts: Annotated[dict[str, int], merge] = {}
    best: Annotated[int, max] = 0


Step = Callable[[Work, StepContext], Any]


def note(name: str, **fields: Any) -> Step:
    """A step of that name, which notes that it was taken, and changes these fields."""

    async def step(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"notes": [name], **fields}

    step.__name__ = name
    return step


class Sees:
    """A step that keeps the states and contexts that it is given, and may fail at first."""

    def __init__(self, fails: int = 0, error: Exception | None = None, **fields: Any) -> None:
        self.states: list[Work] = []
        self.contexts: list[StepContext] = []
        self._fails = fails
        self._error = error or ValueError("not yet")
        self._fields = fields

    async def run(self, state: Work, ctx: StepContext) -> dict[str, Any]:
        self.states.append(state)
        self.contexts.append(ctx)
        if len(self.states) <= self._fails:
            raise self._error
        return self._fields


def failing(name: str, error: Exception | None = None) -> Step:
    """A step of that name that never works."""

    async def step(state: Work, ctx: StepContext) -> None:
        raise error or ValueError(f"{name} cannot")

    step.__name__ = name
    return step


class Model:
    """An engine that keeps its tasks, and gives answers one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.tasks: list[Task] = []
        self._answers = answers or ("Well said.",)

    async def __call__(self, task: Task) -> Any:
        self.tasks.append(task)
        answer = self._answers[min(len(self.tasks), len(self._answers)) - 1]
        given = answer(task) if callable(answer) else answer
        return Answer(given) if isinstance(given, str) else given


class Writer(AgentStep[Work]):
    """An agent that writes a text."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def instructions(self) -> str:
        return "You write."

    def user_prompt(self, state: Work) -> str:
        return f"Write about {state.number}."

    def apply(self, state: Work, answer: Any, context: Any) -> Any:
        return {"text": answer}


def flow_of(*steps: Any, **settings: Any) -> Flow[Work]:
    """A flow of steps one after the other; the settings are those of the last."""
    *before, last = steps
    flow = Flow("work", Work)
    for number, step in enumerate(before):
        flow = flow.then(step) if number else flow.start_with(step)
    return flow.then(last, **settings) if before else flow.start_with(last, **settings)


async def play(app: Loom, flow: Flow[Any], state: Any = None) -> Outcome:
    """What becomes of a run of a flow, also when it fails."""
    try:
        return await app.run(flow, state)
    except FlowFailed as failed:
        return failed.outcome


async def facts(app: Loom, run: str, *kinds: str) -> list[Any]:
    """The facts of some kinds in a run, in order."""
    return [event.data for event in await app.history.events(run) if event.kind in kinds]


async def kinds(app: Loom, run: str, *begin: str) -> list[str]:
    """The kinds of what happened in a run that begin so, in order."""
    return [event.kind for event in await app.history.events(run) if event.kind.startswith(begin)]


async def taken(app: Loom, run: str) -> list[str]:
    """Where steps were taken in a run, in order, every attempt counted."""
    return [each.place for each in await facts(app, run, "step.started")]


def names(results: Sequence[Any]) -> list[tuple[str, str]]:
    """How paths ended."""
    return [(each.name, each.status) for each in results]
