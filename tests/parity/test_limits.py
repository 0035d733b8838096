"""Concurrency limits, labels and tries, where forms could differ."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.parity.forms.stages import (
    FILES,
    SOON,
    Ask,
    Order,
    Parcel,
    Work,
    close,
    confirm,
    repeats,
    talk,
    walk,
    write,
)
from turnloom import (
    Answer,
    DefinitionError,
    Flow,
    Labelled,
    Loom,
    RagCollection,
    RetrievalResult,
    Run,
    Task,
    ToolCall,
    from_retrieval,
)
from turnloom.testing import InMemorySearch


class Gate:
    """An engine that lets nobody through before it is opened."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self._opened, self._changed = asyncio.Event(), asyncio.Event()

    async def __call__(self, task: Task) -> Answer:
        self.runs.append(task.run)
        self._changed.set()
        await self._opened.wait()
        return Answer("hello")

    def open(self) -> None:
        """Let everybody through."""
        self._opened.set()

    async def holds(self, number: int) -> None:
        """Wait until so many came."""
        async with asyncio.timeout(SOON):
            while len(self.runs) < number:
                self._changed.clear()
                await self._changed.wait()


LIMITED = {"agents": {"A": {"system_message": "Hi.", "max_concurrency": 1}}}


def limited() -> Flow[Work]:
    """A flow of one agent that takes one turn at a time."""
    return Flow("walk", Work).start_with(Ask().max_concurrency(1), name="A").finally_(close)


async def begin(app: Loom, form: str, where: Path, flow: Flow[Work]) -> Run[Any]:
    """A run of a form whose agent takes one turn at a time."""
    return await (app.start(flow, Work()) if form == "flow" else app.start(where / "Talk"))


async def begun(run: Run[Any]) -> None:
    """Wait until a run's turn is on record as begun."""
    async with asyncio.timeout(SOON):
        async for event in run.events():
            if event.kind == "turn.started":
                return


@pytest.mark.parametrize("form", ["conversation", "flow"])
async def test_a_run_that_waits_for_room_can_be_cancelled(form: str, tmp_path: Path) -> None:
    write(tmp_path, LIMITED)
    gate, flow = Gate(), limited()
    async with Loom(store="memory", engine=gate) as app:
        first = await begin(app, form, tmp_path, flow)
        await gate.holds(1)
        second = await begin(app, form, tmp_path, flow)
        await begun(second)
        async with asyncio.timeout(SOON):
            assert await second.cancel()
            assert (await second.finished()).kind == "run.cancelled"
        third = await begin(app, form, tmp_path, flow)
        gate.open()
        assert (await first.finished()).kind == "run.finished"
        assert (await third.finished()).kind == "run.finished"
    assert gate.runs == [first.id, third.id]


async def asks_first(task: Task) -> Answer:
    """Has a person asked by the first run's tool, and says hello else."""
    if task.exchanges or not task.tools:
        return Answer("hello")
    return Answer("", calls=(ToolCall(task.tools[0].name, {}),))


class Asks(Ask):
    """A step whose tool asks a person."""

    tools = (confirm,)


@pytest.mark.parametrize("form", ["conversation", "flow"])
async def test_a_turn_that_waits_for_a_person_leaves_its_room(form: str, tmp_path: Path) -> None:
    tool = {"agent": "A", "file": "work.py", "function": "confirm"}
    write(tmp_path, {**LIMITED, "tools": {"tools": [tool]}}, FILES)
    flow = Flow("walk", Work).start_with(Asks().max_concurrency(1), name="A").finally_(close)
    async with Loom(store="memory", engine=asks_first) as app:
        runs = [await begin(app, form, tmp_path, flow) for _ in range(2)]
        for run in reversed(runs):  # the one that began last is answered first
            async with asyncio.timeout(SOON):
                async for event in run.events():
                    if event.kind == "question.asked":
                        break
        for run in reversed(runs):
            await run.answer(None, {"sure": True})
            assert (await run.finished()).kind == "run.finished"


async def test_what_has_one_name_in_two_forms_has_a_room_each(tmp_path: Path) -> None:
    """A board and a flow may be called the same, and so may their agents."""
    gate = Gate()
    flow = Flow("shop", Work).start_with(Ask().max_concurrency(1), name="A").finally_(close)
    async with Loom(store="memory", engine=gate) as app:
        board = app.board("shop")
        board.agent("A").consumes(Order).max_concurrency(1)
        await board.publish(Order())
        run = await app.start(flow, Work())
        await gate.holds(2)
        gate.open()
        await run.finished()
        await board.run_until_idle(SOON)


# ------------------------------------------------------------------ labels


class Rules(RagCollection):
    """A collection that a folder and a flow search."""

    name = "rules"


class Shelf(InMemorySearch):
    """A collection in which some passages are for those who have a label."""

    def __init__(self) -> None:
        super().__init__()
        self.seed(RetrievalResult("Public rule.", 0.9, "public.md"))
        self.seed(RetrievalResult("Staff rule.", 0.9, "staff.md", visibility=Labelled({"staff"})))


async def register(app: Loom) -> None:
    """Have the app know the collection."""
    app.register_collection(Rules, Shelf())


CODE = {
    "providers.py": """
from turnloom import RagCollection

class Rules(RagCollection):
    name = "rules"
"""
}
SEARCH = {"context": {"sources": [{"retrieval": {"collection": "rules", "query": "rule"}}]}}


@pytest.mark.parametrize("labels", [[], ["staff"]])
async def test_labels_open_what_is_found_in_collections(labels: list[str], tmp_path: Path) -> None:
    agent = {**SEARCH, **({"labels": labels} if labels else {})}
    talked = await talk(tmp_path, agent, code=CODE, engine=repeats, prepare=register)
    step = Ask().labels(*labels) if labels else Ask()
    source = from_retrieval(Rules, query="rule", top_k=5, min_relevance=0.1)
    walked = await walk(step, context=[source], app={"engine": repeats}, prepare=register)
    for seen in (talked, walked):
        assert "Public rule." in seen.said
        assert ("Staff rule." in seen.said) == bool(labels)


# ------------------------------------------------------------------ tries


class Packs(Ask):
    """A step whose answer is a parcel."""

    output_type = Parcel
    thread = "packing"

    def __init__(self) -> None:
        self.heard: list[str] = []


async def parcels(task: Task) -> Answer:
    """A better parcel in the second try."""
    task.say("parcel")
    return Answer(output={"item": "gold" if "/s1/" in task.key else "tin"})


async def test_a_score_gets_the_answer_and_the_best_one_counts_alone() -> None:
    scored: list[Answer] = []

    def score(answer: Answer) -> int:
        scored.append(answer)
        return len(answer.output["item"])

    seen = await walk(Packs().best_of(2, score), app={"engine": parcels})
    assert [each.output for each in scored] == [{"item": "tin"}, {"item": "gold"}]
    (completed, _) = [event.data for event in seen.events if event.kind == "step.completed"]
    assert completed.update == {"text": "gold"}
    assert [each.text for each in completed.said[1:]] == ['{"item":"gold"}']
    assert seen.heard == [], "tries that go on side by side are not streamed"


async def test_a_step_hears_the_text_that_counts() -> None:
    heard: list[str] = []

    class Hears(Ask):
        on_text = heard.append

    async def words(task: Task) -> Answer:
        task.say("x")
        return Answer("longer" if "/s1/" in task.key else "long")

    await walk(Hears().best_of(2, lambda answer: len(answer.text)), app={"engine": words})
    assert heard == ["longer"]


async def test_a_score_that_fails_fails_the_step() -> None:
    def score(answer: Answer) -> float:
        raise ValueError("no idea")

    seen = await walk(Ask().best_of(2, score))
    assert seen.data("step.failed", "error") == ["ValueError"]


async def test_a_step_that_tries_may_be_tried_again() -> None:
    calls = 0

    def score(answer: Answer) -> float:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("not yet")
        return 1.0

    seen = await walk(Ask().best_of(2, score), retry=1)
    assert seen.events[-1].kind == "run.finished"
    assert len(seen.data("sample.chosen", "chosen")) == 1


# ------------------------------------------------------------------ components of folders


@pytest.mark.parametrize(
    ("function", "code"),
    [("missing", "W043"), ("wants", "W073"), ("breaks", "W073"), ("nothing", "W073")],
)
async def test_a_function_that_makes_no_component_is_told(
    function: str, code: str, tmp_path: Path
) -> None:
    made = """
def wants(more): ...
def breaks(): raise RuntimeError("no")
def nothing(): return object()
"""
    declared = {"components": [{"file": "made.py", "function": function}]}
    with pytest.raises(DefinitionError) as refused:
        await talk(tmp_path, declared, code={"made.py": made})
    assert [each.code for each in refused.value.diagnostics] == [code]


async def test_a_component_that_an_agent_has_is_not_given_again(tmp_path: Path) -> None:
    made = "from tests.parity.forms.stages import Loud\nLOUD = Loud()\ndef loud(): return LOUD\n"
    declared = {"components": [{"file": "made.py", "function": "loud"}] * 2}
    with pytest.raises(DefinitionError) as refused:
        await talk(tmp_path, declared, code={"made.py": made})
    assert [each.code for each in refused.value.diagnostics] == ["W073"]
