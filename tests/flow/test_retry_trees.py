"""Random flows that fail wherever they can, and are retried, end as if nothing had happened."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.flow.ledgers import Ledger, Stumbled, Trip, count, travel, undoing
from turnloom import Flow, Loom, Outcome, Path, StepContext

# Begins the names of the steps in handlers: after a retry, these may be done again.
HANDLER = "h"

# After so many names, a flow grows by single steps only.
NAMES = 9

# How often a run is retried before it is said to fail for good.
RETRIES = 8


@dataclass
class Grown:
    """A flow of parts that `choices` decide on. Its steps stumble at the labels of `traps`, each as
    often as they say; `labels` are all that it came by."""

    choices: Sequence[int]
    traps: dict[str, int] = field(default_factory=dict[str, int])
    ledger: Ledger = field(default_factory=Ledger)
    labels: dict[str, None] = field(default_factory=dict[str, None])
    recovering: set[str] = field(default_factory=set[str])
    names: int = 0
    chosen: int = 0

    def choose(self, most: int) -> int:
        """A number below `most`."""
        self.chosen += 1
        return self.choices[self.chosen % len(self.choices)] % most

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        self.names += 1
        return f"{kind}{self.names}"

    def pass_by(self, label: str) -> None:
        """Stumble, if there is a trap."""
        self.labels[label] = None
        if self.traps.get(label, 0):
            self.traps[label] -= 1
            raise Stumbled(label)

    def step(self, name: str) -> Callable[..., Any]:
        """A step with two effects."""

        async def step(state: Trip, ctx: StepContext) -> dict[str, Any]:
            for part in ("a", "b"):
                what = f"{name}.{state.n}{part}"
                self.pass_by(what)
                await ctx.once(part, partial(self.ledger.effect, what, ctx.idempotency_key))
            self.pass_by(f"{name}.{state.n}c")
            return {"said": [f"{name}.{state.n}"], "cost": 1}

        step.__name__ = name
        return step

    def undo(self, name: str) -> Callable[..., Any]:
        """A compensation."""
        undo = undoing(self.ledger, name)

        async def stumbling(state: Trip, ctx: StepContext) -> dict[str, Any]:
            if self.traps.pop(f"undo {name}", 0):
                raise Stumbled(name)
            return await undo(state, ctx)

        stumbling.__name__ = f"undo_{name}"
        return stumbling

    def handler(self) -> Path:
        """A path for a failure."""
        return Path(self.step(self.name(HANDLER)))

    def flow(self) -> Flow[Trip]:
        """The whole flow."""
        flow: Any = Flow("tree", Trip).start_with(self.step("start"), compensate=self.undo("start"))
        flow = self.line(flow, 3, 3)
        return flow.on_failure(self.handler()) if self.choose(3) == 0 else flow

    def line(self, path: Any, depth: int, most: int = 2) -> Any:
        """Some nodes, one after the other."""
        for _ in range(1 + self.choose(most)):
            kind = self.choose(6) if depth and self.names < NAMES else 0
            path = (self.leaf, self.leaf, self.fork, self.loop, self.branch, self.approval)[kind](
                path, depth - 1
            )
        return path

    def leaf(self, path: Any, depth: int) -> Any:
        """A step."""
        name, config = self.name("s"), dict[str, Any]()
        if self.choose(2):
            config["compensate"] = self.undo(name)
        if depth >= 0 and self.choose(3) == 0:
            config["on_failure"] = self.handler()
            if self.choose(2):
                config["recover"] = True
                self.recovering.add(name)
        if self.choose(5) == 0:
            config["retry"] = 1
        return path.then(self.step(name), **config)

    def fork(self, path: Any, depth: int) -> Any:
        """Two paths, the first of which may handle its failure."""
        before = self.names
        first = self.line(Path(), depth)
        if self.choose(3) == 0:
            inside = range(before + 1, self.names + 1)
            self.recovering |= {f"{kind}{number}" for kind in "sj" for number in inside}
            first = first.on_failure(self.handler())
        second = self.line(Path(), depth)
        return path.fork(first, second, join=self.step(self.name("j")), name=self.name("f"))

    def loop(self, path: Any, depth: int) -> Any:
        """Two passes."""
        body = self.line(Path().then(count, name=self.name("c")), depth)
        return path.repeat_until(lambda state: False, body, max_iterations=2, name=self.name("l"))

    def branch(self, path: Any, depth: int) -> Any:
        """One way or the other."""
        cases = {True: self.line(Path(), depth), False: self.line(Path(), depth)}
        return path.branch(lambda state: state.n % 2 == 0, cases, name=self.name("b"))

    def approval(self, path: Any, depth: int) -> Any:
        """Somebody is asked."""
        return path.await_approval("boss", name=self.name("a"))


async def grow(
    app: Loom, choices: Sequence[int], traps: Mapping[str, int]
) -> tuple[Outcome[Trip], Grown]:
    """What becomes of a flow with such traps, retried until it finishes."""
    grown = Grown(choices)
    flow = grown.flow()
    grown.traps = {**traps}
    run = await app.start(flow, Trip())
    outcome = await travel(run)
    for _ in range(RETRIES):
        if outcome.status == "finished":
            break
        await run.retry()
        outcome = await travel(run)
    return outcome, grown


def own(labels: Sequence[str] | set[str]) -> set[str]:
    """Without what handlers did."""
    return {label for label in labels if not label.startswith(HANDLER)}


async def check(choices: Sequence[int], chosen: int, most: int) -> None:
    """Let a flow fail at so many points; failures that it recovers from are part of its course."""
    async with Loom(store="memory") as app:
        _, first = await grow(app, choices, {})
        lasting = [label for label in first.labels if label.partition(".")[0] in first.recovering]
        course = dict.fromkeys(lasting[chosen % 3 :: 3], 10**6)
        expected, grown = await grow(app, choices, course)
        assert expected.status == "finished", course
        fragile = [
            label
            for label in own({*grown.labels})
            if label.partition(".")[0] not in grown.recovering
        ]
        for number, label in enumerate(sorted(fragile)[chosen % 4 :: 4][:most]):
            other = fragile[(chosen + number) % len(fragile)]
            undo = {f"undo {other.partition('.')[0]}": 1} if number % 3 == 0 else {}
            traps = {**course, label: 2, **({other: 2} if number % 2 else {}), **undo}
            outcome, tried = await grow(app, choices, traps)
            assert (outcome.status, outcome.state) == ("finished", expected.state), traps
            assert own(tried.ledger.done_twice()) == set(), traps
            assert own(tried.ledger.stands()) == own(grown.ledger.stands()), traps
            assert tried.ledger.reused() == [], traps


trees = given(st.lists(st.integers(0, 59), min_size=8, max_size=80), st.integers(0, 11))


@trees
@settings(max_examples=5, deadline=None)
async def test_a_random_flow(choices: list[int], chosen: int) -> None:
    await check(choices, chosen, 3)


@pytest.mark.doors
@trees
@settings(max_examples=100, deadline=None)
async def test_many_random_flows(choices: list[int], chosen: int) -> None:
    await check(choices, chosen, 20)
