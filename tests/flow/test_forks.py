"""Paths that are walked at once."""

import asyncio
from typing import Any

from tests.flow.scenes import Sees, Work, facts, failing, flow_of, names, note, play
from turnloom import Flow, InvalidUpdate, Loom, Path, StepContext, complete


def forking(*paths: Any, join: Any, **more: Any) -> Flow[Work]:
    return flow_of(note("begin")).fork(*paths, join=join, **more).finally_(note("end"))


class Meets:
    """Steps that go on only when all of them are there."""

    def __init__(self, number: int) -> None:
        self._barrier = asyncio.Barrier(number)

    def __call__(self, name: str, **fields: Any) -> Any:
        async def step(state: Work, ctx: StepContext) -> dict[str, Any]:
            await self._barrier.wait()
            return {"notes": [name], **fields}

        step.__name__ = name
        return step


async def test_paths_are_walked_at_once_and_joined_in_declared_order(app: Loom) -> None:
    meets, join, others = Meets(3), Sees(), asyncio.Event()

    async def last(state: Work, ctx: StepContext) -> dict[str, Any]:
        await others.wait()
        return {"notes": ["slow"]}

    async def let(state: Work, ctx: StepContext) -> None:
        others.set()

    paths = [meets("a", number=1), last], meets("b", text="b"), [meets("c", best=3), let]
    outcome = await app.run(forking(*paths, join=join))
    assert outcome.state == Work(
        number=1, text="b", best=3, notes=["begin", "a", "slow", "b", "c", "end"]
    )
    assert join.states == [Work(number=1, text="b", best=3, notes=["begin", "a", "slow", "b", "c"])]


async def test_each_path_begins_with_the_same_state_and_sees_its_own_changes(app: Loom) -> None:
    first, second = Sees(), Sees()
    await app.run(
        forking(
            Path().then(note("a", number=1)).then(first, name="first"),
            Path().then(note("b")).then(second, name="second"),
            join=note("join"),
        )
    )
    assert first.states == [Work(number=1, notes=["begin", "a"])]
    assert second.states == [Work(notes=["begin", "b"])]


async def test_the_join_sees_how_each_path_ended(app: Loom) -> None:
    join = Sees()
    rescued = Path(note("b"), failing("c", LookupError("lost"))).on_failure(note("rescue"))
    outcome = await app.run(forking(note("a", number=4), rescued, join=join, name="split"))
    (context,) = join.contexts
    assert names(context.paths) == [("split.0", "completed"), ("split.1", "recovered")]
    first, second = context.paths
    assert first.state.number == 4 and first.failure is None
    assert second.failure is not None and second.failure.message == "lost"
    assert second.state.notes == ["begin", "b", "rescue"]
    assert outcome.status == "finished"
    (joined,) = await facts(app, outcome.run_id, "fork.joined")
    assert [each.status for each in joined.paths] == ["completed", "recovered"]
    assert joined.paths[0].error == "" and "LookupError" in joined.paths[1].error


async def test_a_failure_that_its_step_recovers_from_is_none_of_the_path(app: Loom) -> None:
    join = Sees()
    mended = Path().then(failing("b"), on_failure=note("mend"), recover=True)
    outcome = await app.run(forking(note("a"), mended, join=join))
    assert names(join.contexts[0].paths)[1][1] == "completed"
    assert outcome.state.notes == ["begin", "a", "mend", "end"]


async def test_a_path_that_fails_stops_the_others_and_what_was_done_is_made_up_for(
    app: Loom,
) -> None:
    stopped: list[str] = []
    undone: list[str] = []
    begun = asyncio.Event()

    async def hang(state: Work, ctx: StepContext) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(ctx.step)

    def undo(name: str) -> Any:
        async def step(state: Work, ctx: StepContext) -> None:
            undone.append(name)

        return step

    async def fail_late(state: Work, ctx: StepContext) -> None:
        await begun.wait()
        raise ValueError("too much")

    join = Sees()
    flow = (
        Flow("work", Work)
        .start_with(note("begin"), compensate=undo("begin"))
        .fork(
            Path().then(note("a"), compensate=undo("a")).then(hang, compensate=undo("hang")),
            Path().then(fail_late, compensate=undo("fail_late")),
            join=join,
        )
    )
    outcome = await play(app, flow)
    assert outcome.status == "failed" and stopped == ["hang"] and join.states == []
    assert undone == ["fail_late", "a", "begin"]
    assert outcome.failure is not None and outcome.failure.message == "too much"
    (skipped,) = await facts(app, outcome.run_id, "step.skipped")
    assert skipped.place == "fork.0/hang"


async def test_two_paths_that_set_one_field_are_refused(app: Loom) -> None:
    flow = forking(note("a", number=1), note("b", number=2), join=note("join"))
    outcome = await play(app, flow)
    assert outcome.failure is not None and outcome.failure.error == InvalidUpdate.__name__
    for value in ("'fork.0'", "'fork.1'", "'number'"):
        assert value in outcome.failure.message


async def test_reducers_join_what_paths_changed(app: Loom) -> None:
    outcome = await app.run(
        forking(
            note("a", counts={"x": 1, "a": 1}, best=7),
            note("b", counts={"x": 2, "b": 2}, best=5),
            join=note("join"),
        ),
        Work(best=6),
    )
    assert outcome.state.counts == {"x": 2, "a": 1, "b": 2} and outcome.state.best == 7


async def test_a_join_may_fail_and_be_handled(app: Loom) -> None:
    join = Path().then(failing("join"), on_failure=note("mend"), recover=True)
    outcome = await app.run(forking(note("a"), note("b"), join=join))
    assert outcome.state.notes == ["begin", "a", "b", "mend", "end"]


async def test_forks_nest(app: Loom) -> None:
    inner = Path(note("a")).fork(note("b"), note("c"), join=note("inner_join"))
    outcome = await app.run(forking(inner, note("d"), join=note("join")))
    assert outcome.state.notes == ["begin", "a", "b", "c", "inner_join", "d", "join", "end"]


async def test_a_path_of_a_fork_has_branches_and_loops(app: Loom) -> None:
    async def count(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"number": state.number + 1}

    loop = Path().repeat_until(lambda state: state.number == 3, count)
    branch = Path().branch(lambda state: state.text, {"": note("blank")})
    outcome = await app.run(forking(loop, branch, join=note("join")))
    assert outcome.state.number == 3 and outcome.state.notes == ["begin", "blank", "join", "end"]


async def test_a_path_that_completes_is_through(app: Loom) -> None:
    short = Path(note("a")).branch(lambda state: 1, {1: complete()}).then(note("never"))
    outcome = await app.run(forking(short, note("b"), join=note("join")))
    assert outcome.state.notes == ["begin", "a", "b", "join", "end"]


async def test_many_paths_are_walked(app: Loom) -> None:
    paths = [note(f"n{number}") for number in range(100)]
    outcome = await app.run(forking(*paths, join=note("join")))
    assert outcome.state.notes[1:-2] == [f"n{number}" for number in range(100)]
