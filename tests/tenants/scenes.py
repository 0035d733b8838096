"""Programs of tenants over one store, whose runs have the same ids."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.asking import asking
from tests.flow.scenes import Work, note
from tests.reaction.scenes import SOON, Clerk, Order, Parcel, Payment, fail
from tests.support.folders import write_folder
from tests.support.world import at_rest
from tests.tenants.deeds import canary
from turnloom import Board, Event, Flow, Loom
from turnloom.agents.spec import Answer, Task, ToolCall, use_ui_tool
from turnloom.log.spec import RunKey
from turnloom.testing import FakeEntropy

# What every tenant calls its own.
ARTIFACT, CORRELATION = "order", "correlated"


async def confirm(item: str) -> Any:
    """Ask whether an item may go."""
    return await use_ui_tool("confirm", {"item": item})


def ask(task: Task) -> Any:
    """Call the tool, and pack what was answered."""
    item = str(task.inputs[0].payload["item"])
    if not task.exchanges:
        return Answer(calls=(ToolCall("confirm", {"item": item}),))
    return Parcel(item=item, notes=str(task.exchanges[0].results[0].value))


def flow() -> Flow[Work]:
    """A flow that waits for a person."""
    return Flow("work", Work).start_with(note("draft")).await_approval("boss").finally_(note("end"))


@dataclass(frozen=True)
class Program:
    """A program of one tenant, with a board and a flow."""

    tenant: str
    app: Loom
    board: Board

    async def begin(self, where: Path) -> list[str]:
        """A conversation, a flow and a run of a board that ask, and one of the board in which a
        turn failed; their ids."""
        app, mark = self.app, canary(self.tenant)
        folder = write_folder(where / mark, asking(payload={"title": mark}), "Asks")
        talk = await app.start(folder, app_id=self.tenant)
        await at_rest(talk)
        work = await app.start(flow(), Work(text=mark, notes=[mark]), app_id=self.tenant)
        await work.outcome()
        order = Order(item=mark)
        asked = await self.board.publish(order, id=ARTIFACT, correlation_id=CORRELATION)
        failed = await self.board.publish(Payment(item=mark), id="payment", tags={mark})
        await self.board.run_until_idle(SOON, raise_errors=False)
        return [talk.id, work.id, str(asked.run), str(failed.run)]


@asynccontextmanager
async def program(store: Any, tenant: str) -> AsyncIterator[Program]:
    """A program of a tenant; chance gives each the same ids."""
    async with Loom(store=store, entropy=FakeEntropy()) as app:
        app.register_flow(flow())
        board = app.board("shop", app_id=tenant)
        clerk = board.agent("clerk").consumes(Order).publishes(Parcel)
        clerk.with_tools(confirm).with_engines(Clerk(ask))
        board.agent("breaker").consumes(Payment).with_engines(Clerk(fail))
        board.agent("waiter").consumes(Payment, Payment, Payment).with_engines(Clerk())
        yield Program(tenant, app, board)


async def logs(store: Any, tenant: str) -> dict[str, list[Event]]:
    """All that is on record of a tenant."""
    ends = await store.log.runs(tenant, 1000)
    return {first.run: list(await store.log.read(RunKey(tenant, first.run))) for first, _ in ends}
