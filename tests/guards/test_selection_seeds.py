"""A seed says who is chosen: the same in every app that is given the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.reaction.scenes import Order, Parcel
from tests.support.folders import write_folder
from tests.support.plays import every
from turnloom import AgentStep, Answer, Flow, Guards, Loom, Publication, Selection, Task

NAMES = ("ann", "bob")


async def on_a_board(seed: int | None, orders: int = 8, **settings: Any) -> list[str]:
    """Who is chosen for orders that come one after the other, and of whom one often fails."""
    chosen: list[str] = []

    async def pack(task: Task) -> Answer:
        chosen.append(task.agent)
        if task.agent == "bob" and len(chosen) % 2:
            raise RuntimeError("out of office")
        return Answer(artifacts=(Publication(Parcel(item="tea")),))

    selection = Selection(candidates=NAMES, seed=seed)
    async with Loom(**{"store": "memory", **settings}) as app:
        board = app.board(guards=Guards(selection=selection))
        for name in NAMES:
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(pack)
        for number in range(orders):
            await board.publish(Order(number=number))
            await board.run_until_idle(raise_errors=False)
    return chosen


async def test_two_apps_with_one_seed_choose_alike() -> None:
    first, second = await on_a_board(2), await on_a_board(2)
    assert first == second and {*first} == {*NAMES}
    assert await on_a_board(5) != first


async def test_what_is_known_goes_on_in_the_next_program(tmp_path: Path) -> None:
    def store(name: str) -> dict[str, str]:
        return {"store": str(tmp_path / f"{name}.db")}

    parts = [await on_a_board(2, 1, **store("parts")) for _ in range(6)]
    assert {name for part in parts for name in part} == {*NAMES}, "each program draws anew"
    again = [await on_a_board(2, 1, **store("again")) for _ in range(6)]
    assert parts == again


async def test_choices_without_an_outcome_between_them_differ() -> None:
    async with Loom(store="memory") as app:
        selection = Selection(candidates=NAMES, seed=1, category=lambda order: order.item)
        board = app.board(guards=Guards(selection=selection))
        for name in NAMES:
            board.agent(name).consumes(Order).with_engines(lambda task: None)
        await board.publish_many([Order() for _ in range(12)])
        await board.run_until_idle()
        runs = [each.run for each in await app.runs(50)]
        facts = [every(await app.history.events(run), "selection.made") for run in runs]
    chances = [fact.chance for each in facts for fact in each]
    assert len({*chances}) == 12 and all(each.startswith("1/") for each in chances)


async def in_a_conversation(where: Path) -> list[str]:
    setup = {"initial_agent": "desk", "max_turns": 16}
    setup |= {"guards": {"selection": {"candidates": NAMES, "seed": 5}}}
    pairs = (("desk", "ann"), ("ann", "desk"), ("bob", "desk"))
    rules = [{"source_agent": a, "target_agent": b, "handoff_type": "after_work"} for a, b in pairs]
    agents = {name: {"system_message": "Help."} for name in ("desk", *NAMES)}
    files = {"orchestrator": setup, "agents": agents, "handoffs": rules}
    folder = write_folder(where, {f"{part}.json": json.dumps(it) for part, it in files.items()})

    async def engine(task: Task) -> Answer:
        return Answer(f"It is {task.agent}.")

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder)
        await run.finished()
        return [each.chosen for each in every(await app.history.events(run.id), "selection.made")]


class Notes(BaseModel):
    """What a flow knows."""

    model_config = ConfigDict(frozen=True)
    said: str = ""


class Write(AgentStep[Notes]):
    """A step for which one of several engines answers."""

    def __init__(self, **engines: Any) -> None:
        self.engines = engines

    def user_prompt(self, state: Notes) -> str:
        """What it is asked."""
        return "Go."

    def apply(self, state: Notes, answer: Any, context: Any) -> dict[str, Any]:
        """What comes of its answer."""
        return {"said": answer}


async def in_a_flow(where: Path) -> list[str]:
    def engine(name: str) -> Any:
        async def answer(task: Task) -> Answer:
            return Answer(name)

        return answer

    flow = Flow("notes", Notes).start_with(
        Write(**{name: engine(name) for name in NAMES}),
        select=Selection(candidates=NAMES, seed=9),
    )
    async with Loom(store="memory") as app:
        return [(await app.run(flow, Notes())).state.said for _ in range(8)]


@pytest.mark.parametrize("play", [in_a_conversation, in_a_flow])
async def test_conversations_and_flows_choose_alike(play: Any, tmp_path: Path) -> None:
    first, second = await play(tmp_path / "one"), await play(tmp_path / "two")
    assert first == second and {*first} == {*NAMES}
