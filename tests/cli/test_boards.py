"""Runs of boards at the command line, where the program that declares the board is not."""

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Call
from tests.explain.shop import Order, Parcel, Payment
from turnloom import Answer, Board, Loom, Task, ToolCall, use_ui_tool

PATIENCE = 20.0


async def approve(item: str) -> bool:
    """Ask somebody."""
    answer = await use_ui_tool("approve", {"item": item})
    return answer["approved"]


async def pack(task: Task) -> Any:
    if not task.exchanges:
        return Answer(calls=(ToolCall("approve", {"item": "hat"}),))
    approved = task.exchanges[0].results[0].value
    return Parcel(label="sent" if approved else "kept")


def declare(app: Loom) -> Board:
    board = app.board("shop")
    board.agent("packer").consumes(Order).publishes(Parcel).with_tools(approve).with_engines(pack)
    board.agent("pair").consumes(Payment, Payment).with_engines(pack)
    return board


async def test_runs_of_boards_are_listed_and_explained_and_need_their_program_to_go_on(
    turnloom: Call, tmp_path: Path
) -> None:
    store = str(tmp_path / "runs.db")
    async with Loom(store=store) as app:
        board = declare(app)
        order = await board.publish(Order(item="hat"))
        payment = await board.publish(Payment(number=1), correlation_id="lone")
        await board.run_until_idle(PATIENCE)
    asks, rests = str(order.run), str(payment.run)

    listed = json.loads(turnloom("runs", "--store", store, "--json").out)
    assert {(each["run"], each["workflow"], each["status"]) for each in listed} == {
        (asks, "shop", "waiting"),
        (rests, "shop", "collecting"),
    }
    table = turnloom("runs", "--store", store).out
    assert asks in table and "collecting 1 of 2" in table
    assert "collecting 1 of 2" in turnloom("explain", rests, "--store", store).out.splitlines()[0]
    timeline = turnloom("explain", asks, "--store", store)
    assert f"packer#1: {order.id}" in timeline.out and "--route 3" in timeline.out
    turn = turnloom("explain", asks, "--turn", "1", "--store", store).out
    assert "packer#1" in turn and "digests verified" in turn and order.id in turn
    assert "turn 1" in turnloom("explain", asks, "--route", "3", "--store", store).out
    assert "pair#1" in turnloom("explain", rests, "--route", "3", "--store", store).out
    assert "seq 4" in turnloom("explain", asks, "--route", "5", "--store", store).out

    plan = json.loads(turnloom("show", "plan", asks, "--json", "--store", store).out)
    assert plan["agents"]["packer"]["subscriptions"][0]["id"] == "packer#1"
    assert "packer\n" in turnloom("show", "plan", asks, "--store", store).out
    assert "PATH" in turnloom("show", "plan", code=2).err
    assert asks in turnloom("show", "graph", asks, "--store", store, code=2).err

    assert "'shop'" in turnloom("resume", asks, "--store", store, code=2).err
    answered = turnloom("answer", asks, '{"approved": true}', "--store", store)
    assert asks in answered.out and " resume " not in answered.out
    turnloom("answer", asks, '{"approved": false}', "--store", store)  # the first one counts
    cancelled = turnloom("cancel", rests, "--reason", "alone", "--store", store, code=2)
    assert "'shop'" in cancelled.err

    async with Loom(store=store) as app:
        board = declare(app)
        await board.resume()
        await board.run_until_idle(PATIENCE)
        await board.publish(Payment(number=2), correlation_id="lone")
        await board.run_until_idle(PATIENCE)
        ends = {run: (await app.history.events(run))[-1] for run in (asks, rests)}
        (parcel,) = [e.data.artifact for e in await app.history.events(asks) if e.actor == "packer"]
    assert ends[asks].kind == "run.finished" and parcel.payload == {"label": "sent"}
    assert (ends[rests].kind, ends[rests].data.reason) == ("run.cancelled", "alone")
