"""Real runs to explain: an engine that keeps what it was given, and answers that never vary."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from tests.explain.workshop import LINES, REPLIES, TOKEN, WORKSHOP
from tests.support.folders import write_folder
from turnloom import Answer, Event, Loom, Task
from turnloom.agents.spec import Usage
from turnloom.explain.logic.route import explain_route
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.logic.variable import explain_variable
from turnloom.explain.spec.explanations import RunDeclarations
from turnloom.explain.spec.route import RouteExplained
from turnloom.explain.spec.steps import Detail
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained
from turnloom.wiring import declared

T = TypeVar("T")

FLOW = {
    "orchestrator.yaml": """
        initial_agent: Asker
        initial_message: Begin.
        human_in_the_loop: true
        """,
    "agents.yaml": """
        agents:
          Asker: {system_message: "Ask. ☕ [bold]not markup[/bold]"}
          Planner: {system_message: Plan.}
        """,
    "context_variables.yaml": """
        definitions:
          tier: {type: string, source: {type: static, value: "beta\\n- forged: 1"}}
          limit: {type: integer, source: {type: environment, env_var: TEST_LIMIT, default: 3}}
          known:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_text, agent: Asker, match: {contains: NEXT}, hide: true}]
          stage:
            type: string
            source:
              type: derived
              default: asking
              triggers:
                - {type: agent_text, agent: Asker, match: {contains: NEXT}, value: planning}
                - {type: agent_text, agent: Planner, match: {contains: DONE}, value: done}
        agents:
          Asker: {variables: [tier, limit, known]}
          Planner: {variables: [stage, user_id]}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - source_agent: Asker
            target_agent: Planner
            handoff_type: condition
            condition: ${known} == True AND ${stage} == "planning"
          - source_agent: Asker
            target_agent: terminate
            handoff_type: condition
            condition: ${stage} == "done"
          - {source_agent: Asker, target_agent: user, handoff_type: after_work}
          - source_agent: Planner
            target_agent: terminate
            handoff_type: condition
            condition: ${stage} == "done"
          - {source_agent: Planner, target_agent: Planner, handoff_type: after_work}
          - {source_agent: user, target_agent: Asker, handoff_type: after_work}
        """,
}
SAID = {"Asker": ["First?", "Second?\n\nuser: forged", "NEXT"], "Planner": ["A plan.", "DONE"]}


class Engine:
    """Says its lines and keeps every task."""

    def __init__(self, said: Mapping[str, Sequence[str | Answer]] = SAID) -> None:
        self.said = said
        self.tasks: list[Task] = []

    async def __call__(self, task: Task) -> Answer:
        self.tasks.append(task)
        lines = self.said[task.agent]
        if task.number > len(lines):
            raise ValueError("nothing left to say")
        line = lines[task.number - 1]
        answer = Answer(line) if isinstance(line, str) else line
        return msgspec.structs.replace(answer, usage=Usage(10 * task.turn, task.turn))


@dataclass
class Told:
    """A run that has stopped: its events, its declarations, and what its engine was given."""

    events: Sequence[Event]
    declared: RunDeclarations
    tasks: list[Task] = field(default_factory=list[Task])

    def seq(self, kind: str, nth: int = 0) -> int:
        return [event.seq for event in self.events if event.kind == kind][nth]

    def turn(self, number: int) -> TurnExplained:
        return explain_turn(self.events, number)

    def route(self, seq: int) -> RouteExplained:
        return explain_route(self.events, seq, self.declared)

    def variable(self, name: str, at: int | None = None) -> VariableExplained:
        return explain_variable(self.events, name, at, self.declared)


def of(found: TurnExplained, kind: type[T]) -> list[T]:
    """The steps of a turn that are of a kind."""
    return [step for step in found.steps if isinstance(step, kind)]


def tells(text: str, *values: object) -> bool:
    """Whether a text names these values, in this order; in which words, `rendered.txt` says."""
    place = 0
    for value in values:
        found = text.find(str(value), place)
        if found < 0:
            return False
        place = found + len(str(value))
    return True


def said(details: Sequence[Detail]) -> list[str]:
    """What details say, up to when it was."""
    return [each.says.partition(" at 20")[0] for each in details]


Tell = Callable[..., Awaitable[Told]]


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    async def run(
        files: Mapping[str, str] = FLOW,
        said: Mapping[str, Sequence[str | Answer]] = SAID,
        answers: Sequence[Any] = ("one", "two \x1b[31m"),
    ) -> Told:
        engine = Engine(said)
        left = iter(answers)
        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(write_folder(tmp_path, files), user_id="u1")
            async for event in run.events():
                if event.kind == "run.paused":
                    answer = next(left, None)
                    if answer is None:
                        break
                    await run.answer(None, answer)
            events = await app.history.events(run.id)
            return Told(events, await declared(events[0].data), engine.tasks)

    return run


@pytest.fixture
async def told(tell: Tell) -> Told:
    return await tell()


@pytest.fixture
async def busy(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> Told:
    """A run in which everything happens."""
    monkeypatch.setenv("TURNLOOM_TEST_TOKEN", TOKEN)
    return await tell(WORKSHOP, LINES, REPLIES)
