"""Runs of flows are pinned to the plan that they began with."""

from pathlib import Path as FilePath
from typing import Any

import pytest
from pydantic import BaseModel, Field, create_model

from tests.flow.scenes import Work, note
from turnloom import (
    AgentStep,
    Answer,
    Flow,
    Loom,
    Option,
    Path,
    PlanChanged,
    Task,
    UsageError,
    escalate_to,
)


def asking(last: str) -> Flow[Work]:
    """A flow that waits for a person."""
    return (
        Flow("pinned", Work)
        .start_with(note("book"), compensate=note("cancel"))
        .await_approval("boss")
        .finally_(note(last))
    )


async def parked(store: str) -> str:
    """A run of the flow that waits, of which this process holds nothing any more."""
    async with Loom(store=store) as app:
        return (await app.run(asking("pay"))).run_id


@pytest.fixture
def store(tmp_path: FilePath) -> str:
    return str(tmp_path / "turnloom.db")


async def test_a_run_goes_on_with_its_own_plan_in_another_process(store: str) -> None:
    run = await parked(store)
    async with Loom(store=store) as app:
        app.register_flow(asking("post"))
        app.register_flow(asking("pay"))
        again = await app.resume(run)
        await again.answer(None, "approve", user_id="boss")
        assert (await again.outcome()).state.notes == ["book", "pay"]


async def test_a_changed_plan_is_refused_with_what_differs(store: str) -> None:
    run = await parked(store)
    async with Loom(store=store) as app:
        app.register_flow(asking("post"))
        with pytest.raises(PlanChanged) as refused:
            await (await app.resume(run)).outcome()
    lines = str(refused.value).splitlines()
    assert any(line.lstrip().startswith("-") and "pay" in line for line in lines)
    assert any(line.lstrip().startswith("+") and "post" in line for line in lines)


def described(text: str, answer: str = "approve", most: int = 9) -> Flow[Work]:
    """A flow in which everything that can be described is."""
    words = Field(max_length=most, description=text, title=text, examples=[text])
    said: type[BaseModel] = create_model("Said", __doc__=text, description=(str, words))

    class Tell(AgentStep[Work, BaseModel]):
        output_type = said

        def instructions(self) -> str:
            """What it is for."""
            return text

        def user_prompt(self, state: Work) -> str:
            """What it is asked."""
            return "Tell."

        def apply(self, state: Work, answer: Any, context: Any) -> dict[str, Any]:
            """What it said."""
            return {"notes": [answer.description]}

    tier = {"type": "string", "description": text, "source": {"type": "static", "value": "a"}}
    late = escalate_to("owner", options=[Option(answer, "Yes", text)])
    flow = Flow("described", Work, variables={"definitions": {"tier": tier}}).start_with(
        note("book")
    )
    approval = {"options": [Option(answer, "Yes", text)], "timeout": 60, "on_timeout": late}
    flow.await_approval("boss", **approval)
    return flow.fork(Path().then(Tell(), name="one"), Path().then(Tell(), name="two"), join=Tell())


async def repeat(task: Task) -> Answer:
    """What an agent was told."""
    return Answer(output={"description": task.system})


async def test_a_run_continues_when_a_description_changed(store: str) -> None:
    async with Loom(store=store, engine=repeat) as app:
        run = (await app.run(described("Be short."))).run_id
    async with Loom(store=store, engine=repeat) as app:
        app.register_flow(described("Be kind."))
        again = await app.resume(run)
        await again.answer(None, "approve", user_id="boss")
        assert (await again.outcome()).state.notes == ["book", *["Be kind."] * 3]


@pytest.mark.parametrize("change", [{"answer": "agree"}, {"most": 8}])
async def test_a_run_does_not_continue_when_what_decides_changed(
    store: str, change: dict[str, Any]
) -> None:
    async with Loom(store=store, engine=repeat) as app:
        run = (await app.run(described("Be kind."))).run_id
    async with Loom(store=store, engine=repeat) as app:
        app.register_flow(described("Be kind.", **change))
        with pytest.raises(PlanChanged):
            await (await app.resume(run)).outcome()


async def test_a_flow_that_nobody_has_is_named(store: str) -> None:
    run = await parked(store)
    async with Loom(store=store) as app:
        with pytest.raises(UsageError) as refused:
            await (await app.resume(run)).outcome()
    assert "'pinned'" in str(refused.value) and "register" in str(refused.value)


async def test_plans_are_no_runs(store: str) -> None:
    """As many runs are listed as are asked for, and the last of them is the one begun last."""
    begun = [await parked(store), await parked(store)]
    async with Loom(store=store) as app:
        assert [each.run for each in await app.runs(2)] == begun[::-1]
        assert [each.run for each in await app.runs()] == begun[::-1]
        (last,) = await app.runs(1)
        plan = await app.handle(last.run).plan()
    assert last.run == begun[-1]
    assert plan is not None and plan.name == "pinned" and '"book"' in plan.text


async def test_a_changed_plan_is_kept_beside_the_one_before(store: str) -> None:
    first = await parked(store)
    async with Loom(store=store) as app:
        second = (await app.run(asking("post"))).run_id
        plans = [await app.handle(each).plan() for each in (first, second)]
        assert len(await app.runs(3)) == 2
    assert plans[0] is not None and plans[1] is not None
    assert '"pay"' in plans[0].text and '"post"' in plans[1].text
