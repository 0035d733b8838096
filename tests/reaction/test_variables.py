"""Variables and hooks on boards: the same as in workflow folders, one set of values per run."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.reaction.scenes import (
    MINUTE,
    Clerk,
    Gate,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    fail,
    failures,
    idle,
    pack,
    statuses,
)
from tests.support.timed import Timed
from turnloom import Loom
from turnloom.agents.spec import Answer, Publication, Task, ToolCall
from turnloom.board.spec import FilterConfig
from turnloom.errors import DefinitionError, MissingContext, UsageError
from turnloom.log.spec import Event
from turnloom.reaction.spec import Batch
from turnloom.variables.spec import UNCHANGED, Context


def derived(*triggers: dict[str, Any], type: str = "boolean", default: Any = False) -> Any:
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type, "source": source}


VARIABLES: dict[str, Any] = {
    "definitions": {
        "tier": derived(type="string", default="gold"),
        "packed": derived({"type": "agent_text", "agent": "packer", "match": {"equals": "DONE"}}),
        "weight": derived(
            {
                "type": "agent_text",
                "agent": "packer",
                "match": {"regex": "weighs (.*)"},
                "capture": 1,
            },
            type="string",
            default="",
        ),
        "seen": derived(
            {"type": "context_changed", "variable": "packed", "equals": True, "value": True}
        ),
    },
    "agents": {"checker": {"variables": ["tier", "packed", "weight"]}},
}


async def test_what_agents_say_and_make_changes_variables_that_others_are_shown(
    app: Loom,
) -> None:
    first, second = (
        Clerk(lambda task: "it weighs a ton"),
        Clerk(lambda task: Answer("DONE", artifacts=(Publication(Parcel()),))),
    )
    board, checker = app.board(variables=VARIABLES), Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(first, second)
    board.agent("checker").description("You check.").consumes(Parcel).with_engines(checker)
    order = await board.publish(Order())
    await idle(board)
    changed = {each.name: each.value for each in await facts(app, "context.changed", order.run)}
    assert changed == {"packed": True, "weight": "a ton", "seen": True}
    system = checker.tasks[0].system
    assert system.startswith("You check.")
    for line in ('- tier: "gold"', "- packed: true", '- weight: "a ton"'):
        assert line in system


async def test_values_are_of_one_run(app: Loom) -> None:
    board, checker = app.board(variables=VARIABLES), Clerk()

    def make(task: Task) -> Answer:
        words = "DONE" if task.inputs[0].payload["item"] == "tea" else "no"
        return Answer(words, artifacts=(Publication(pack(task)),))

    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(Clerk(make))
    board.agent("checker").consumes(Parcel).with_engines(checker)
    for item in ("tea", "milk"):
        await board.publish(Order(item=item))
        await idle(board)
    assert ["packed: true" in task.system for task in checker.tasks] == [True, False]


async def test_a_tool_writes_and_another_agent_is_shown_it(app: Loom) -> None:
    async def note(context_variables: Context) -> str:
        context_variables["tier"] = "silver"
        return "noted"

    def make(task: Task) -> Any:
        return Parcel() if task.exchanges else Answer(calls=(ToolCall("note", {}),))

    board, checker = app.board(variables=VARIABLES), Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_tools(note).with_engines(
        Clerk(make)
    )
    board.agent("checker").consumes(Parcel).with_engines(checker)
    await board.publish(Order())
    await idle(board)
    assert '- tier: "silver"' in checker.tasks[0].system
    (changed,) = await facts(app, "context.changed")
    assert changed.writer == "tool:note"


async def test_a_function_derives_from_what_agents_make(app: Loom) -> None:
    def total(event: Event, values: Mapping[str, Any]) -> Any:
        if event.kind != "agent.output":
            return UNCHANGED
        return values["total"] + event.data.output["total"]

    variables = {
        "definitions": {
            "total": derived({"type": "function", "function": total}, type="integer", default=0)
        },
        "agents": {"checker": {"variables": ["total"]}},
    }
    board, checker = app.board(variables=variables), Clerk()
    board.agent("cashier").consumes(Order).publishes(Receipt).with_engines(
        Clerk(lambda task: [Receipt(total=3), Receipt(total=4)])
    )
    board.agent("checker").consumes(Receipt, Receipt).with_engines(checker)
    await board.publish(Order())
    await idle(board)
    assert "- total: 7" in checker.tasks[0].system


async def test_a_variable_that_is_required_stops_a_publish(app: Loom) -> None:
    needed = {
        "definitions": {
            "key": {
                "type": "string",
                "required": True,
                "source": {"type": "environment", "env_var": "NO_SUCH_KEY"},
            }
        }
    }
    board, clerk = app.board(variables=needed), Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    with pytest.raises(MissingContext, match="key"):
        await board.publish(Order())
    assert await everything(board) == []
    assert await app.runs() == []


WRONG: dict[str, tuple[Any, str]] = {
    "an agent that is not there": ({"agents": {"nobody": {"variables": []}}}, "nobody"),
    "a trigger of nobody": (
        {
            "definitions": {
                "x": derived({"type": "agent_text", "agent": "nobody", "match": {"equals": "a"}})
            }
        },
        "nobody",
    ),
    "a tool that is not there": (
        {"definitions": {"x": derived({"type": "tool_response", "tool": "absent"})}},
        "absent",
    ),
    "a function that is not there": (
        {"definitions": {"x": derived({"type": "function", "function": "absent"})}},
        "'absent'",
    ),
    "two functions of one name": (
        {
            "definitions": {
                "x": derived({"type": "function", "function": lambda event, values: 1}),
                "y": derived({"type": "function", "function": lambda event, values: 2}),
            }
        },
        "'<lambda>'",
    ),
    "no definition": ({"definitions": {"x": 5}}, "x"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_variables_are_checked_before_anything_runs(app: Loom, case: str) -> None:
    variables, named = WRONG[case]
    board = app.board(variables=variables)
    board.agent("clerk").consumes(Order).with_engines(Clerk())
    with pytest.raises((DefinitionError, UsageError), match=named):
        await board.publish(Order())
    assert await app.runs() == []


async def test_a_timer_runs_out_while_a_turn_is_taken(timed: Timed) -> None:
    variables = {
        "definitions": {"late": derived({"type": "timer_expired", "after": 60})},
        "agents": {"checker": {"variables": ["late"]}},
    }
    board, gate, checker = timed.board(variables=variables), Gate(), Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(gate)
    board.agent("checker").consumes(Parcel).with_engines(checker)
    await board.publish(Order())
    await gate.holds(1)
    timed.clock.advance(MINUTE)
    gate.open()
    await idle(board)
    assert "late: true" in checker.tasks[0].system


class Notes:
    """Hooks that note when they run."""

    def __init__(self) -> None:
        self.marks: list[str] = []

    def at(self, trigger: str, agent: str | None = None, **more: Any) -> dict[str, Any]:
        """A hook for an occasion."""

        def hook(context_variables: Context) -> None:
            status = context_variables.get("run_status")
            self.marks.append(f"{trigger} {status}" if status else trigger)

        hook.__name__ = f"at_{trigger}"
        return {"trigger": trigger, "agent": agent, "function": hook, **more}


async def test_hooks_run_around_the_run_and_around_turns(app: Loom) -> None:
    notes = Notes()
    hooks = [
        notes.at("before_chat"),
        notes.at("before_agent", "clerk"),
        notes.at("after_agent", "clerk"),
        notes.at("after_chat"),
    ]

    def make(task: Task) -> Parcel:
        notes.marks.append("engine")
        return pack(task)

    board = app.board(hooks=hooks)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(make))
    board.agent("other").consumes(Parcel).with_engines(Clerk())
    order = await board.publish(Order())
    await idle(board)
    assert notes.marks == [
        *("before_chat", "before_agent", "engine", "after_agent", "after_chat finished")
    ]
    assert [each.status for each in await facts(app, "lifecycle.tool_result", order.run)] == [
        "success"
    ] * 4


async def test_hooks_of_every_agent_run_for_every_turn(app: Loom) -> None:
    notes = Notes()
    board = app.board(hooks=[notes.at("before_agent"), notes.at("after_agent")])
    board.agent("one").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    board.agent("two").consumes(Parcel).with_engines(Clerk(fail))
    await board.publish(Order())
    assert len(await failures(board)) == 1
    assert notes.marks == ["before_agent", "after_agent"] * 2


async def test_hooks_run_where_nobody_subscribes_and_in_runs_of_sets(app: Loom) -> None:
    notes = Notes()
    board, clerk = app.board(hooks=[notes.at("before_chat"), notes.at("after_chat")]), Clerk()
    board.agent("clerk").consumes(Order, batch=Batch(2)).with_engines(clerk)
    await board.publish(Receipt())
    await idle(board)
    assert notes.marks == ["before_chat", "after_chat finished"]
    notes.marks.clear()
    for _ in range(2):
        await board.publish(Order())
        await idle(board)
    assert len(clerk.tasks) == 1
    assert notes.marks == ["before_chat", "after_chat finished"] * 3, "not where sets are collected"


async def test_what_a_hook_writes_is_shown_and_a_condition_skips_it(app: Loom) -> None:
    def promote(context_variables: Context) -> None:
        context_variables["tier"] = "platinum"

    def never(context_variables: Context) -> None:
        raise AssertionError("its condition does not hold")

    hooks = [
        {"trigger": "before_agent", "agent": "checker", "function": promote},
        {"trigger": "before_agent", "function": never, "when": '${tier} == "tin"'},
    ]
    board, checker = app.board(variables=VARIABLES, hooks=hooks), Clerk()
    board.agent("packer").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    board.agent("checker").consumes(Parcel).with_engines(checker)
    await board.publish(Order())
    await idle(board)
    assert '- tier: "platinum"' in checker.tasks[0].system
    skipped = [e for e in await facts(app, "lifecycle.tool_result") if e.status == "skipped"]
    assert len(skipped) == 2


async def test_a_hook_that_fails_stops_nothing(app: Loom) -> None:
    def broken(context_variables: Context) -> None:
        raise LookupError("no")

    board = app.board(hooks=[{"trigger": "before_chat", "function": broken}])
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
    await board.publish(Order())
    await idle(board)
    assert len(await everything(board, "Parcel")) == 1
    assert [each.error for each in await facts(app, "lifecycle.tool_error")] == ["LookupError"]


async def test_hooks_learn_how_a_run_ended(app: Loom) -> None:
    notes = Notes()
    board, gate = app.board(hooks=[notes.at("after_chat", on="always")], max_turns=2), Gate()
    board.agent("slow").consumes(Payment).publishes(Parcel).with_engines(gate)
    looping = board.agent("loop").consumes(Order).publishes(Order)
    looping.with_engines(Clerk(lambda task: Order())).prevent_self_trigger(False)
    payment = await board.publish(Payment())
    await gate.holds(1)
    assert payment.run is not None
    await board.cancel(payment.run)
    await app.handle(payment.run).finished()
    await board.publish(Order())
    assert len(await failures(board)) == 1
    assert notes.marks == ["after_chat cancelled", "after_chat failed"]
    assert await statuses(app) == ["cancelled", "failed"]


def is_late(minutes: int) -> bool:
    return minutes > 5


@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        ({"trigger": "before_chat"}, "function"),
        ({"trigger": "whenever", "function": print}, "whenever"),
        ({"trigger": "before_agent", "agent": "nobody", "function": print}, "nobody"),
        ({"trigger": "before_chat", "function": print, "when": "tier =="}, "W030"),
        ({"trigger": "before_chat", "function": print, "colour": "red"}, "colour"),
        ({"trigger": "before_chat", "function": is_late}, "minutes"),
    ],
)
async def test_hooks_are_checked_before_anything_runs(
    app: Loom, hook: dict[str, Any], problem: str
) -> None:
    board = app.board(hooks=[hook])
    board.agent("clerk").consumes(Order).with_engines(Clerk())
    with pytest.raises((UsageError, DefinitionError), match=problem):
        await board.publish(Order())
    assert await app.runs() == []


async def test_runs_of_a_board_are_whose_they_are(app: Loom) -> None:
    board = app.board(user_id="ann", app_id="acme")
    clerk = Clerk()
    board.agent("clerk").consumes(Order).with_engines(clerk)
    order = await board.publish(Order())
    await idle(board)
    (summary,) = await app.runs(app_id="acme")
    assert (summary.user, summary.tenant, summary.workflow) == ("ann", "acme", "board")
    events = await app.history.events(order.run or "", app_id="acme")
    (loaded,) = [event.data for event in events if event.kind == "context.loaded"]
    values = {each.name: each.value for each in loaded.values}
    assert (values["user_id"], values["app_id"], values["chat_id"]) == ("ann", "acme", order.run)
    items, _ = await board.query_artifacts(FilterConfig(runs={order.run or ""}))
    assert len(items) == 1
