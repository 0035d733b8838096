"""Edits of flows: where a backtest is certain, the edited flow really does the same."""

from typing import Any

import pytest
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from tests.backtest.truth import backtested, lies
from turnloom import AgentStep, Answer, Event, Flow, Loom, Path, Task, Update
from turnloom.adapters.memory import MemoryStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)
    amount: int = 120
    text: str = ""
    tries: int = 0
    price: int = 0
    stock: int = 0
    path: str = ""


class Choice(BaseModel):
    team: str
    confidence: float = 0.7


async def weigh(state: Order) -> dict[str, Any]:
    return {"price": state.amount * 2}


async def count(state: Order) -> dict[str, Any]:
    return {"stock": 3}


async def again(state: Order) -> dict[str, Any]:
    return {"tries": state.tries + 1}


async def unsure(state: Order) -> Any:
    return Update(path="unsure", confidence=0.5)


async def manager(state: Order) -> dict[str, Any]:
    return {"path": "manager"}


async def clerk(state: Order) -> dict[str, Any]:
    return {"path": "clerk"}


async def check(state: Order) -> dict[str, Any]:
    return {"text": f"{state.text}!"}


async def engine(task: Task) -> Answer:
    return Answer(output={"team": "billing", "confidence": 0.7})


class Settings(dict[str, Any]):
    """The parts of the flow that edits change."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


USUAL = Settings(
    limit=100,
    tries=2,
    most=5,
    least=0.4,
    sure=0.6,
    instructions="You route orders.",
    prompt=lambda state: f"Which team? {state.price}",
    apply=lambda state, answer: {"text": answer.team},
    stocked=lambda state: state.stock > 0,
    guards=None,
    default=120,
)


def build(it: Settings) -> Flow[Order]:
    class Triage(AgentStep[Order, Choice]):
        output_type = Choice

        def instructions(self) -> str:
            return it.instructions

        def user_prompt(self, state: Order) -> str:
            return it.prompt(state)

        def apply(self, state: Order, answer: Choice, context: Any) -> Any:
            return it.apply(state, answer)

    flow = Flow("orders", Order, guards=it.guards)
    flow.start_with(weigh)
    asked = Path().then(Triage, require_confidence=it.sure, on_low_confidence=Path(again))
    flow.fork(Path(count), asked, join=check)
    flow.then(unsure, require_confidence=it.least, on_low_confidence=Path(clerk))
    flow.branch(lambda state: state.amount > it.limit, {True: manager, False: clerk})
    flow.repeat_until(
        lambda state: state.tries >= it.tries, Path(again), max_iterations=it.most, name="ring"
    )
    flow.then(check, name="last", validate=(it.stocked, "nothing is in stock"))
    return flow


EDITS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "branch": {"limit": 200},
    "branch that decides the same": {"limit": 110},
    "loop": {"tries": 1},
    "longer loop": {"tries": 3},
    "most passes": {"most": 1},
    "threshold": {"least": 0.6},
    "threshold of the agent": {"sure": 0.9},
    "instructions": {"instructions": "Route."},
    "prompt": {"prompt": lambda state: f"Team? {state.price}"},
    "apply": {"apply": lambda state, answer: {"text": answer.team.upper()}},
    "validation": {"stocked": lambda state: state.stock > 5},
    "budget": {"guards": {"budget": {"steps": 4}}},
}


async def play(flow: Flow[Order]) -> tuple[list[Event], Any]:
    store = MemoryStore(codec())
    async with Loom(store=store, engine=engine) as app:
        run = await app.start(flow, Order())
        await run.finished()
        loaded = app._open().flows.load(flow)
        return [*await store.log.read(RunKey("local", run.id))], loaded


@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_certain_of_a_flow_is_true(edit: str) -> None:
    recorded, _ = await play(build(USUAL))
    real, loaded = await play(build(Settings(USUAL | EDITS[edit])))
    found = await to_thread.run_sync(backtested, loaded, recorded)
    assert not lies(found, real, assumed=edit != "apply")
    same = edit in ("nothing", "branch that decides the same")
    assert same == (not found.run.counts and found.run.end is None), found.run


async def test_a_timeout_that_only_the_edited_flow_has() -> None:
    recorded, _ = await play(build(USUAL))
    flow = Flow("orders", Order, timeout=3600.0).start_with(weigh)
    real, loaded = await play(flow)
    found = await to_thread.run_sync(backtested, loaded, recorded)
    assert not lies(found, real)
    assert [event.id for event in found.sure if event.kind == "timer.set"] == ["timeout"]
