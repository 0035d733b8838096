"""Whatever an engine answers, what is on record can be read, and the run can be ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task, ToolCall, Usage, artifact_type
from turnloom.agents.spec import Exchange, ToolResult

TALK = {
    "orchestrator.yaml": "{initial_agent: Poet, max_turns: 2}",
    "agents.yaml": "agents: {Poet: {system_message: Write.}}",
}

odd: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=4)
    | st.just(object())
    | st.sampled_from(["\ud800", "\0", "", 10**400]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), each, max_size=3)
        | st.tuples(each)
    ),
    max_leaves=5,
)
names, objects = st.just("pay") | odd, st.just({}) | odd
calls = st.builds(ToolCall, names, objects, st.just("") | odd)
results = st.builds(ToolResult, odd, st.just("") | odd)
exchanges = st.builds(
    Exchange,
    st.just("") | odd,
    st.tuples(calls) | odd,
    st.tuples(results) | odd,
    st.just("") | odd,
)
# Each answer is right but for one of these.
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "text": odd,
    "usage": st.builds(Usage, odd, st.just(1)) | odd,
    "calls": st.tuples(calls) | st.lists(calls, max_size=2) | odd,
    "output": odd,
    "artifacts": st.tuples(odd) | odd,
    "model": odd,
    "added": st.tuples(odd) | odd,
    "before": st.tuples(exchanges) | odd,
}
spoilt = st.sampled_from([*FIELDS]).flatmap(lambda name: st.builds(Answer, **{name: FIELDS[name]}))
answers = spoilt | odd


def saying(answer: Any) -> Callable[[Task], Any]:
    async def engine(task: Task) -> Any:
        return answer

    return engine


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_folder(tmp_path_factory.mktemp("hostile"), TALK, "Talk"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "runs.db"


@pytest.mark.doors
@settings(max_examples=60)
@given(answers)
async def test_a_conversation_stays_readable(talk: str, store: Path, answer: Any) -> None:
    async with Loom(store=str(store), engine=saying(answer)) as app:
        run = await app.start(talk)
        ended = await run.finished()
    async with Loom(store=str(store)) as app:
        assert (await app.history.events(run.id))[-1] == ended
        assert (await app.runs(1))[0].run == run.id


@artifact_type(name="hostile.Order")
class Order(BaseModel):
    n: int


@artifact_type(name="hostile.Bill")
class Bill(BaseModel):
    n: int


@pytest.mark.doors
@settings(max_examples=60)
@given(answers | st.lists(odd, max_size=2))
async def test_a_board_stays_readable(store: Path, answer: Any) -> None:
    async with Loom(store=str(store)) as app:
        board = app.board()
        board.agent("clerk").consumes(Order).publishes(Bill).with_engines(saying(answer))
        order = await board.publish(Order(n=1))
        await board.run_until_idle(raise_errors=False)
    async with Loom(store=str(store)) as app:
        assert await app.history.events(order.run or "")
        assert await app.runs()
