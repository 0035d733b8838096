"""A flow with everything in it, whose process may be killed around every effect."""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from tests.support.flows import FlowLives
from turnloom import AgentStep, Answer, Flow, Path, Retry, Task, append, use_ui_tool


class Trip(BaseModel):
    """What is known of a journey."""

    model_config = ConfigDict(frozen=True)

    tries: int = 0
    seat: str = ""
    said: str = ""
    notes: Annotated[list[str], append] = []


class Doomed(Exception):
    """Wanted by the test."""


class Travel:
    """Books a journey: `fails` names what fails for good, `done` counts effects."""

    def __init__(self, fails: Collection[str] = (), **settings: Any) -> None:
        self.fails = fails
        self.done: Counter[str] = Counter()
        self.lives: FlowLives
        self.flow = self._flow(settings)

    def point(self) -> None:
        """Be killed here, or not."""
        self.lives.fuse.point()

    def note(self, name: str) -> Callable[..., Any]:
        """A step that leaves a note, or fails."""

        async def step(state: Trip, ctx: Any) -> Any:
            self.point()
            self.done[ctx.idempotency_key] += 1
            if name in self.fails:
                raise Doomed(name)
            self.point()
            return {"notes": [name]}

        step.__name__ = step.__qualname__ = name
        return step

    def undo(self, name: str) -> Callable[..., Any]:
        """What makes up for a step."""

        async def undo(state: Trip, ctx: Any) -> Any:
            self.point()

            async def effect() -> str:
                self.done[ctx.idempotency_key] += 1
                return name

            await ctx.once("undo", effect)
            self.point()
            if f"undo_{name}" in self.fails:
                raise Doomed(name)
            return {"notes": [f"undo {name}"]}

        undo.__name__ = undo.__qualname__ = f"undo_{name}"
        return undo

    async def search(self, state: Trip, ctx: Any) -> Any:
        """Fails at first."""
        self.point()
        if ctx.attempt < 3:
            raise LookupError("nothing found")
        return {"notes": [f"search {ctx.attempt}"]}

    async def draft(self, state: Trip, ctx: Any) -> Any:
        """One more try."""
        self.point()
        return {"tries": state.tries + 1}

    async def seat(self, state: Trip, ctx: Any) -> Any:
        """Does something once, and asks."""
        price = await ctx.once("price", self.price)
        self.point()
        seat = await use_ui_tool("seat", {"prompt": f"Which seat for {price}?"})
        self.point()
        return {"seat": seat}

    async def price(self) -> int:
        """An effect that is to be had once."""
        self.point()
        self.done["price"] += 1
        return 40

    async def engine(self, task: Task) -> Answer:
        """Answers for the agent."""
        self.point()
        return Answer(f"pack for {task.agent}")

    def _flow(self, settings: dict[str, Any]) -> Flow[Trip]:
        travel = self

        class Pack(AgentStep[Trip]):
            async def _answer(self, task: Task) -> Answer:
                return await travel.engine(task)

            engine = property(lambda self: self._answer)  # type: ignore[assignment]

            def user_prompt(self, state: Trip) -> str:
                return f"What to pack after {state.tries} tries?"

            def apply(self, state: Trip, answer: Any, context: Any) -> Any:
                return {"said": answer}

        note, undo = self.note, self.undo
        flow = Flow("travel", Trip, **settings)
        flow.start_with(note("plan"), compensate=undo("plan"))
        flow.repeat_until(
            lambda state: state.tries == 2,
            Path().then(self.draft, name="draft", compensate=undo("draft")),
            max_iterations=4,
        )
        flow.fork(
            Path()
            .then(note("hotel"), compensate=undo("hotel"))
            .then(self.search, name="search", retry=Retry(2, delay=5, jitter=False)),
            Path().then(self.seat, name="seat").then(Pack, compensate=undo("pack")),
            join=note("join"),
        )
        flow.await_approval("boss", context=lambda state: f"Seat {state.seat}?")
        flow.then(note("pay"), compensate=undo("pay"))
        flow.finally_(note("send"), compensate=undo("send"))
        return flow.on_failure(Path(note("tell"), note("file")))


def boss(question: Any) -> Any:
    """Answers whatever is asked."""
    return {"seat": "12A", "approval": "approve"}[question.tool]


def travel(
    fails: Collection[str] = (), person: Any = boss, store: Any = None, **settings: Any
) -> Travel:
    """A journey with its lives."""
    return again(Travel(fails, **settings), person, store)


def again(made: Travel, person: Any = boss, store: Any = None) -> Travel:
    """The same journey from its beginning: to check a flow takes longer than to run it."""
    made.done.clear()
    made.lives = FlowLives(made.flow, Trip(), person, store)
    return made
