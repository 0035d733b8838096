"""Commands that converse with a run in this terminal, and their closing words."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

import typer
from pydantic import BaseModel

from turnloom.agents.events import ModelCalled, TurnStarted
from turnloom.agents.spec import Engine, Question
from turnloom.app import Definition, Loom, Run
from turnloom.cli.command import EngineName, ModelName
from turnloom.cli.narration import JsonLines, Narration, Story
from turnloom.cli.person import Person, is_attended
from turnloom.cli.questions import addressee, example, gist, tidy
from turnloom.cli.session import ScriptedUser, Session
from turnloom.cli.stored import Json, StoredRunsCommand, present_store, telling_of_workers
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.conversation.events import RouteDecided
from turnloom.errors import TurnloomError, UsageError
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.flow_routes import is_flow
from turnloom.flow.events import StepFailed
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Event
from turnloom.runtime.retrying import ASK, RECORDED


@runtime_checkable
class Scripted(Protocol):
    """An engine that knows which of its lines were not reached."""

    def unused_lines(self, spoken: Mapping[str, int]) -> dict[str, int]:
        """The number of unused lines of each agent, given how often each was asked."""
        ...


@dataclass(frozen=True, kw_only=True)
class ConversingCommand(StoredRunsCommand):
    """A command that converses with a run."""

    quiet: Annotated[bool, typer.Option("--quiet", help="Only what agents say and ask.")] = False
    json: Json = False
    unattended: Annotated[
        bool, typer.Option("--unattended", help="The workflow's scripted user answers.")
    ] = False
    model: ModelName = None
    engine: EngineName = None

    def open(self) -> Loom:
        """The app, with the requested model and engine."""
        return Loom(store=present_store(self.store), model=self.model, engine=self.engine)

    async def converse(
        self, app: Loom, run: Run, terminal: Terminal, user: str, before: Sequence[Event] = ()
    ) -> int:
        """Follow a run until it ends or waits, and return the exit code. `user` answers here."""
        if self.quiet and self.json:
            raise UsageError("--quiet and --json exclude each other. Choose one.")
        loaded = await app.history.definition(run.id, app_id=run.app_id)
        for name in loaded.unheeded:
            notice = f"--{name} makes no difference: every agent chooses what answers for it"
            terminal.tell(safe(f"{notice}, by `engine` or `model`.", "yellow"))
        if not self._is_scripted():
            self._tell_players(loaded, terminal)
        narration = JsonLines(terminal) if self.json else Story(terminal, quiet=self.quiet)
        session = Session(run, narration, self._answers(app, run, narration), user)
        session.recall(before)
        if isinstance(narration, Story) and before:
            narration.recap()
        telling = telling_of_workers(run, terminal) if self.is_handed_over else nullcontext()
        async with telling:
            end = await self._attend(session, run.id, terminal)
        events = await app.history.events(run.id, app_id=run.app_id)
        if end is not None and end.kind == RunFinished.kind and is_flow(events) and not self.json:
            state: BaseModel = (await run.outcome()).state
            terminal.show(safe(tidy(state.model_dump(mode="json"))))
        questions = [] if end else await run.questions()
        loaded = await app.history.definition(run.id, app_id=run.app_id)
        return self._conclude(events, end, questions, loaded, terminal=terminal)

    def _is_scripted(self) -> bool:
        """Whether the workflow's scripted user answers, and not a person."""
        return self.unattended or not is_attended()

    def policy(self, tools: str) -> str:
        """What becomes of calls that touch the world: if no person is here to be asked, those that
        would be asked for are refused."""
        return RECORDED if tools == ASK and self._is_scripted() else tools

    def _tell_players(self, loaded: Definition, terminal: Terminal) -> None:
        """Name the agents that a script plays, and say how to use a model."""
        played = [name for name, engines in loaded.engines.items() if _plays(engines)]
        if not played:
            return
        whom = "all agents" if len(played) == len(loaded.engines) else ", ".join(played)
        notice = f"A script plays {whom}: the lines are fixed, and do not depend on your answers."
        remedy = "`--model NAME`, as in `--model openai:gpt-5`, has a model answer instead."
        terminal.tell(safe(f"{notice} {remedy}", "yellow"))

    def _answers(self, app: Loom, run: Run, narration: Narration) -> Person | ScriptedUser:
        async def lines() -> Sequence[Any]:
            return (await app.history.definition(run.id, app_id=run.app_id)).user_script

        return ScriptedUser(lines) if self._is_scripted() else Person(narration)

    async def _attend(self, session: Session, run: str, terminal: Terminal) -> Event | None:
        onward = f"Run {run} can be resumed: {self._resuming(run)}"
        if self.is_handed_over:
            onward = f"Workers continue run {run}. To follow it: {self._resuming(run)}"
        if not self.is_kept:
            onward = f"Run {run} was kept in memory only, and is gone."
        try:
            return await session.attend()
        except asyncio.CancelledError:
            terminal.tell("")
            terminal.tell(safe(onward))
            raise
        except TurnloomError as error:
            error.add_note(onward)
            raise

    def _conclude(
        self,
        events: Sequence[Event],
        end: Event | None,
        questions: Sequence[Question],
        loaded: Definition,
        terminal: Terminal,
    ) -> int:
        """Say how the run ended or what it waits for, and how to continue; return the exit code."""
        run = events[-1].run
        tell = terminal.tell if self.quiet or self.json else terminal.show
        failure = _failure(end)
        if failure:
            terminal.fail(failure, *_frames(events))
        elif end is None:
            how = (
                "Answer from any terminal, or continue here:"
                if self.is_kept
                else "It was in memory only."
            )
            tell(safe(f"Run {run} waits for {_awaited(events, questions)}. {how}"))
            for asked in filter(None, map(gist, questions)):
                tell(safe(f"  {asked}"))
        elif not self.quiet:
            tell(safe(f"Run {run} finished: {_finish(events, end)}."))
            self._tell_unsaid(events, loaded, terminal)
        else:
            return 0
        for command in self._onward(events, questions):
            tell(joined("  ", (command, "bold")))
        return 1 if failure else 0

    def _tell_unsaid(self, events: Sequence[Event], loaded: Definition, terminal: Terminal) -> None:
        """Warn of lines that the scripted user did not reach; a person may take another way."""
        left = _unsaid(events, loaded) if self._is_scripted() else {}
        if left:
            lines = ", ".join(f"{agent}: {count}" for agent, count in left.items())
            notice = f"The script has lines that were not reached ({lines})."
            terminal.tell(safe(f"{notice} Remove them, or lead the run to them.", "yellow"))

    def _resuming(self, run: str, *words: str) -> str:
        """The command line that continues a run, with the same model and engine."""
        model = ("--model", self.model) if self.model else ()
        engine = ("--engine", self.engine) if self.engine else ()
        return self.again("resume", run, *words, *model, *engine)

    def _onward(self, events: Sequence[Event], questions: Sequence[Question]) -> Iterator[str]:
        """The command lines to continue with."""
        run = events[-1].run
        if not self.is_kept:
            return
        resuming: list[str] = []
        for question in questions:
            other = addressee(events, question)
            answerer = ("--user", other) if other else ()
            which = ("--question", question.id) if len(questions) > 1 else ()
            yield self.again("answer", run, example(question), *which, *answerer)
            resuming.append(self._resuming(run, *answerer))
        yield from dict.fromkeys(resuming)
        if isinstance(events[-1].data, RunFailed):
            yield self.again("retry", run)
        turns = [event.data.turn for event in events if isinstance(event.data, TurnStarted)]
        if turns:
            yield self.again("explain", run, "--turn", str(turns[-1]))
        yield self.again("explain", run)


def _awaited(events: Sequence[Event], questions: Sequence[Question]) -> str:
    """The number of awaited answers, and from whom, if from other people."""
    others = dict.fromkeys(filter(None, (addressee(events, each) for each in questions)))
    people = f" of {', '.join(others)}" if others and len(others) == len(questions) else ""
    return f"{len(questions)} answers{people}" if len(questions) > 1 else f"an answer{people}"


def _finish(events: Sequence[Event], end: Event) -> str:
    """Why the run finished; a rule with its owner."""
    routes = [event.data for event in events if isinstance(event.data, RouteDecided)]
    last = routes[-1] if routes else None
    by_rule = last is not None and any(rule.fired for rule in last.considered)
    return (
        f"{last.source}, {describe(end.data)}"
        if last is not None and by_rule
        else describe(end.data)
    )


def _failure(end: Event | None) -> str:
    """Why the run failed."""
    if end is None or isinstance(end.data, RunFinished):
        return ""
    status = "was cancelled" if isinstance(end.data, RunCancelled) else "failed"
    return f"Run {end.run} {status}: {describe(end.data)}"


def _frames(events: Sequence[Event]) -> list[str]:
    """The frames of the workflow's code that failed last, if recorded."""
    failed = [event.data for event in events if getattr(event.data, "stack", "")]
    if not failed:
        return []
    lines = failed[-1].stack.splitlines()
    if isinstance(failed[-1], StepFailed):  # a whole traceback: its places suffice here
        lines = [line.strip() for line in lines if line.startswith('  File "')]
    return [f"  raised in {line}" for line in lines]


def _plays(engines: Sequence[Engine]) -> bool:
    return bool(engines) and isinstance(engines[0], Scripted)


def _unsaid(events: Sequence[Event], loaded: Definition) -> dict[str, int]:
    """The number of unused lines of each scripted agent."""
    spoken = Counter(event.data.agent for event in events if isinstance(event.data, ModelCalled))
    left: dict[str, int] = {}
    for agent, (engine, *_) in loaded.engines.items():
        if isinstance(engine, Scripted) and agent in (counts := engine.unused_lines(spoken)):
            left[agent] = counts[agent]
    return left
