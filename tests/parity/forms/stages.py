"""The smallest run of each form, with an agent `A` that is asked once, and what is seen of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    ContextRequest,
    ContextSlice,
    Flow,
    Loom,
    Run,
    StepContext,
    Task,
    ToolCall,
    TurnContext,
    use_ui_tool,
)
from turnloom.board.spec import Labelled, Visibility, artifact_type
from turnloom.log.spec import Event
from turnloom.reaction.spec.builder import AgentBuilder

# Seconds within which everything that a test waits for happens, however busy the machine is.
SOON = 60.0

Prepare = Callable[[Loom], Awaitable[None]]


@artifact_type(name="forms.Order")
class Order(BaseModel):
    """What wakes the agent on a board, and what there is to be seen."""

    item: str = "tea"


@artifact_type(name="forms.Parcel")
class Parcel(BaseModel):
    """What the agent makes on a board."""

    item: str = ""


class Work(BaseModel):
    """What the flow is about."""

    model_config = ConfigDict(frozen=True)

    item: str = "tea"
    text: str = ""


class Ask(AgentStep[Work]):
    """The agent of the flow."""

    def instructions(self) -> str:
        """What it is told."""
        return "Hi."

    def user_prompt(self, state: Work) -> str:
        """What it is asked."""
        return "Well?"

    def apply(self, state: Work, answer: Any, context: Any) -> dict[str, Any]:
        """What its answer changes."""
        return {"text": answer if isinstance(answer, str) else answer.item}


@dataclass(frozen=True)
class Seen:
    """What there is to see of a run: what is on record, and what was heard of answers."""

    events: Sequence[Event]
    heard: Sequence[str] = ()

    def data(self, kind: str, name: str) -> list[Any]:
        """One field of every event of a kind."""
        return [getattr(event.data, name) for event in self.events if event.kind == kind]

    @property
    def said(self) -> str:
        """What the agent said last."""
        return (self.data("agent.text", "text") or [""])[-1]

    @property
    def kinds(self) -> set[str]:
        """The kinds of events that there are."""
        return {event.kind for event in self.events}


async def talk(
    where: Path,
    agent: Mapping[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
    code: Mapping[str, str] | None = None,
    *,
    prepare: Prepare | None = None,
    **settings: Any,
) -> Seen:
    """A conversation in which `A` speaks once; `code` are files of its folder."""
    folder = write(
        where, {"agents": {"A": {"system_message": "Hi.", **(agent or {})}}, **(parts or {})}, code
    )
    async with Loom(**{"store": "memory", "engine": hello, **settings}) as app:
        if prepare is not None:
            await prepare(app)
        return await follow(await app.start(folder))


def write(where: Path, parts: Mapping[str, Any], code: Mapping[str, str] | None = None) -> Path:
    """A workflow folder of these parts and files."""
    folder = where / "Talk"
    folder.mkdir(parents=True)
    for name, value in parts.items():
        (folder / f"{name}.json").write_text(json.dumps(value), "utf-8")
    for name, text in (code or {}).items():
        (folder / name).write_text(text, "utf-8")
    return folder


async def react(
    declare: Callable[[AgentBuilder], Any] = lambda agent: None,
    *,
    prepare: Prepare | None = None,
    visibility: Visibility | None = None,
    board: Mapping[str, Any] | None = None,
    more: Callable[[Any], Any] = lambda board: None,
    **settings: Any,
) -> Seen:
    """A board on which an order wakes `A`."""
    async with Loom(**{"store": "memory", "engine": hello, **settings}) as app:
        if prepare is not None:
            await prepare(app)
        made = app.board("desk", **(board or {}))
        declare(made.agent("A").description("Hi.").consumes(Order))
        more(made)
        heard: list[str] = []
        order = await made.publish(Order(), visibility=visibility)
        run = app.handle(order.run or "")
        with run.listening(lambda delta: heard.append(delta.text)):
            await made.run_until_idle(SOON, raise_errors=False)
            while (question := await run.question()) is not None:
                await run.answer(question.id, {"sure": True})
                await made.run_until_idle(SOON, raise_errors=False)
        events = [
            event for each in await app.runs() for event in await app.history.events(each.run)
        ]
        return Seen(events, heard)


async def walk(
    step: AgentStep[Any] | None = None,
    flow: Mapping[str, Any] | None = None,
    *,
    prepare: Prepare | None = None,
    app: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Seen:
    """A flow in which the step of `A` is taken once; `settings` are those of the step."""
    named = {"name": "A", **settings}
    built = Flow("walk", Work, **(flow or {})).start_with(step or Ask(), **named).finally_(close)
    async with Loom(**{"store": "memory", "engine": hello, **(app or {})}) as made:
        if prepare is not None:
            await prepare(made)
        return await follow(await made.start(built, Work()))


def close(state: Work, ctx: StepContext) -> None:
    """The last step, which changes nothing."""


async def follow(run: Run[Any]) -> Seen:
    """A run to its end; what it asks is answered."""
    events: list[Event] = []
    heard: list[str] = []
    with run.listening(lambda delta: heard.append(delta.text)):
        async with asyncio.timeout(SOON):
            async for event in run.events():
                events.append(event)
                if event.kind == "question.asked":
                    await run.answer(event.data.question, {"sure": True})
    return Seen(events, heard)


# ------------------------------------------------------------------ engines


async def hello(task: Task) -> Answer:
    """Says hello."""
    return Answer("hello")


async def streams(task: Task) -> Answer:
    """Says hello in two pieces."""
    task.say("hel")
    task.say("lo")
    return Answer("hello")


async def polish(task: Task) -> Answer:
    """Says what the engine before it said, and more."""
    return Answer(f"{task.exchanges[-1].text}!")


async def counts(task: Task) -> Answer:
    """Says how many items of context there are."""
    return Answer(str(len(task.context.items)))


async def repeats(task: Task) -> Answer:
    """Says all that it was shown."""
    return Answer(task.prompt)


async def tries(task: Task) -> Answer:
    """Says more in its second try."""
    return Answer("longer" if "/s1/" in task.key else "long")


async def calls(task: Task) -> Answer:
    """Calls a tool first, if there is one."""
    if task.tools and not task.exchanges:
        return Answer("", calls=(ToolCall(task.tools[0].name, {}),))
    return Answer("hello")


async def insists(task: Task) -> Answer:
    """Calls a tool again and again."""
    return Answer("", calls=(ToolCall(task.tools[0].name, {}),))


async def formed(task: Task) -> Answer:
    """Answers in the form that is asked for, if one is."""
    return Answer(output={"item": "tea"}) if task.output is not None else Answer("hello")


class Brings:
    """An engine with a provider of its own."""

    async def __call__(self, task: Task) -> Answer:
        """How many items of context there are."""
        return await counts(task)

    async def context_provider(self, request: ContextRequest) -> ContextSlice:
        """One item."""
        return ContextSlice([{"item": "own"}])


class Crowd:
    """An engine that waits until so many turns stand there."""

    def __init__(self, expected: int) -> None:
        self.most = self._now = 0
        self._expected = expected
        self._enough = asyncio.Event()

    async def __call__(self, task: Task) -> Answer:
        """Hello, after everybody who may has come."""
        self._now += 1
        self.most = max(self.most, self._now)
        if self.most == self._expected:
            self._enough.set()
        await self._enough.wait()
        for _ in range(20):  # whoever may stand beside this one gets that far
            await asyncio.to_thread(int)
        self._now -= 1
        return Answer("hello")


# ------------------------------------------------------------------ around turns and calls


class Loud:
    """A component that makes answers loud."""

    async def around_call(self, task: Task, call_next: Callable[[Task], Awaitable[Any]]) -> Any:
        """The answer in capitals."""
        answer = await call_next(task)
        if isinstance(answer, str):
            return answer.upper()
        return msgspec.structs.replace(answer, text=answer.text.upper())


class Prepares:
    """A component that prepares the context of turns."""

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """The turn, with an item in its state."""
        ctx.state["context_snapshot"] = [{"item": "prepared"}]
        await call_next()


class Sees:
    """An observer that notes which kinds of events there are."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()

    def observe(self, event: Event) -> None:
        """Note the kind."""
        self.kinds.add(event.kind)


# What a folder names: the same as functions of its code.
CODE = """
from turnloom import Answer, StateDelegatingProvider, use_ui_tool
from tests.parity.forms.stages import Loud, Prepares, calls, hello, polish

prepared = StateDelegatingProvider()

def loud():
    return Loud()

def prepares():
    return Prepares()

def note(context_variables):
    context_variables["noted"] = True

def pack():
    return "packed"

async def confirm():
    return await use_ui_tool("confirm", {"title": "Sure?"})

def shout(sender, message, recipient, silent):
    return message.upper()
"""
FILES = {"work.py": CODE, "providers.py": CODE}


def note(context_variables: Any) -> None:
    """A hook that writes a variable."""
    context_variables["noted"] = True


def pack() -> str:
    """A tool."""
    return "packed"


async def confirm() -> Any:
    """A tool that asks a person."""
    return await use_ui_tool("confirm", {"title": "Sure?"})


async def hide_an_order(app: Loom) -> None:
    """Put something on the app's board that only those see who have a label."""
    board = app.board("shelf")
    board.register(Order)
    await board.publish(Order(item="secret"), visibility=Labelled({"staff"}))


async def show_an_order(app: Loom) -> None:
    """Put something on the app's board that everybody sees."""
    board = app.board("shelf")
    board.register(Order)
    await board.publish(Order())
