"""Flowcharts of flows: every path that a run can take."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from turnloom.flow.logic.checks.shapes import missing, read_path, values_of, written
from turnloom.flow.logic.plans import steps_of
from turnloom.flow.logic.walking import FAILURE, MAIN
from turnloom.flow.spec.builder import step_name
from turnloom.flow.spec.nodes import (
    ApprovalNode,
    ApprovalRequest,
    BranchNode,
    FlowPlan,
    ForkNode,
    LoopNode,
    Node,
    PlacedPath,
    StepNode,
)
from turnloom.kernel.markup import Flowchart

# The ids of the start, the successful end, the stop, the compensation and the failed end.
START, FINISHED, STOPPED, UNDONE, FAILED = "start", "finished", "stopped", "undone", "failed"


def draw(plan: FlowPlan) -> str:
    """A flow as a flowchart; the ids of its nodes are the places of its plan."""
    return str(_Drawing(plan.state, plan.paths).draw(plan.name))


class _Way(NamedTuple):
    """An edge out of a node whose target is not known yet."""

    node: str
    text: str = ""
    dotted: bool = False


class _Drawing:
    """Draws one flow."""

    def __init__(self, state: Any, paths: Mapping[str, PlacedPath]) -> None:
        self._state = state
        self._paths = paths
        self._chart = Flowchart()
        self._completed: list[_Way] = []
        self._is_stopped = FAILURE in paths or any(
            node.compensate is not None for node in steps_of(paths)
        )

    def draw(self, name: str) -> Flowchart:
        """Draw the flow, and what follows a failure."""
        self._chart.node(START, name, "end")
        self._lead(self._whole(MAIN, [_Way(START)]), FINISHED)
        self._chart.node(FINISHED, "finished", "end")
        if self._is_stopped:
            self._draw_stop()
        return self._chart

    def _draw_stop(self) -> None:
        chart, ways = self._chart, [_Way(STOPPED)]
        chart.node(STOPPED, "a failure that nothing recovers from", "choice")
        if any(node.compensate is not None for node in steps_of(self._paths)):
            chart.node(UNDONE, "compensate what was completed, the last step first", "undo")
            chart.edge(STOPPED, UNDONE)
            ways = [_Way(UNDONE)]
        if FAILURE in self._paths:
            ways = self._whole(FAILURE, ways)
        self._lead(ways, FAILED)
        chart.node(FAILED, "failed", "end")

    def _whole(self, path: str, ways: list[_Way]) -> list[_Way]:
        """Draw a path that ends the flow or a fork; the ways to its end, those of `complete()`
        included."""
        outer, self._completed = self._completed, []
        ways = self._walk(path, ways)
        outer, self._completed = self._completed, outer
        return [*ways, *outer]

    def _walk(self, path: str, ways: list[_Way]) -> list[_Way]:
        """Draw a path that some ways lead to; the ways out of it."""
        line = self._paths[path].line
        for at, node in enumerate(line.nodes):
            ways = self._draw(f"{path}/{at}", node, ways, at + 1 < len(line.nodes))
        if line.ends:
            self._completed += ways
            return []
        return ways

    def _draw(self, place: str, node: Node, ways: list[_Way], is_followed: bool) -> list[_Way]:
        match node:
            case StepNode():
                return self._step(place, _id(place), node, ways)
            case BranchNode():
                return self._branch(place, node, ways, is_followed)
            case ForkNode():
                return self._fork(place, node, ways)
            case LoopNode():
                return self._loop(place, node, ways)
            case ApprovalNode():
                return self._approval(place, node, ways)

    def _step(self, place: str, id: str, node: StepNode, ways: list[_Way]) -> list[_Way]:
        self._chart.node(id, node.name)
        self._lead(ways, id)
        if node.compensate is not None:
            self._chart.node(f"{id}_undo", step_name(node.compensate), "undo")
            self._chart.edge(id, f"{id}_undo", "compensate", dotted=True)
        out = [_Way(id)]
        if node.on_low_confidence is not None:
            low = _Way(id, f"confidence below {node.require_confidence}")
            out += self._walk(f"{place}.low", [low])
        for number, (kind, _) in enumerate(node.on_failure):
            error = "failure" if kind is Exception else step_name(kind)
            failing = _Way(id, f"on {error}", dotted=True)
            handled = self._walk(f"{place}.failed.{number}", [failing])
            if node.recover:
                out += handled
            else:
                self._stop(handled)
        return out

    def _branch(
        self, place: str, node: BranchNode, ways: list[_Way], is_followed: bool
    ) -> list[_Way]:
        id = _id(place)
        self._chart.node(id, f"{node.name}: {_asked(node.on, 'a function')}", "choice")
        self._lead(ways, id)
        out: list[_Way] = []
        for number, (value, _) in enumerate(node.cases):
            out += self._walk(f"{place}.{number}", [_Way(id, written(value))])
        other = _Way(id, "otherwise")
        values = values_of(node.on, self._state)
        if node.otherwise is not None:
            out += self._walk(f"{place}.otherwise", [other])
        elif values is None or missing(node, values):
            if is_followed:
                out.append(other)
            else:
                self._stop([_Way(id, "otherwise", dotted=True)])
        return out

    def _fork(self, place: str, node: ForkNode, ways: list[_Way]) -> list[_Way]:
        id, out = _id(place), list[_Way]()
        self._chart.node(id, node.name, "fork")
        self._lead(ways, id)
        for number, line in enumerate(node.paths):
            path = f"{place}.{number}"
            out += self._whole(path, [_Way(id, f"path {number}")])
            if line.handler is not None:
                out += self._whole(f"{path}!", [_Way(id, f"path {number} fails", dotted=True)])
        return out if node.join is None else self._step(place, f"{id}_join", node.join, out)

    def _loop(self, place: str, node: LoopNode, ways: list[_Way]) -> list[_Way]:
        id, until = _id(place), _asked(node.until, "a condition holds")
        text = f"{node.name}: until {until}, at most {node.max_iterations} passes"
        self._chart.node(id, text, "choice")
        self._lead(ways, id)
        passed = self._walk(f"{place}.body", [_Way(id, "pass")])
        self._lead(passed, id)
        return [_Way(id, "end")]

    def _approval(self, place: str, node: ApprovalNode, ways: list[_Way]) -> list[_Way]:
        out: list[_Way] = []
        rejected: list[_Way] = []
        asking, level = node.asking, 0
        while True:
            id = _id(f"{place}.{level}") if level else _id(place)
            self._chart.node(id, f"{node.name}: {asking.asked}", "person")
            self._lead(ways, id)
            for option in asking.options:
                way = _Way(id, option.label or option.id)
                (rejected if option.rejects else out).append(way)
            ways = _late(id, asking)
            if not isinstance(asking.then, ApprovalRequest):
                break
            asking, level = asking.then, level + 1
        if asking.then is not None:
            out += self._walk(f"{place}.late.{level}", ways)
        else:
            self._stop(ways)
        return out + self._rejected(place, node, rejected)

    def _rejected(self, place: str, node: ApprovalNode, ways: list[_Way]) -> list[_Way]:
        if node.on_rejection is not None:
            return self._walk(f"{place}.rejected", ways)
        self._stop(ways)
        return []

    def _stop(self, ways: list[_Way]) -> None:
        """Lead ways to the stop of the flow."""
        self._is_stopped = self._is_stopped or bool(ways)
        self._lead(ways, STOPPED)

    def _lead(self, ways: Iterable[_Way], target: str) -> None:
        for node, text, dotted in ways:
            self._chart.edge(node, target, text, dotted=dotted)


def _late(id: str, asking: ApprovalRequest) -> list[_Way]:
    """The way out of an approval after its timeout, if it has one."""
    if asking.timeout is None:
        return []
    return [_Way(id, f"no answer in {asking.timeout:g} s", dotted=True)]


def _id(place: str) -> str:
    """The id of the node at a place of the plan."""
    return re.sub(r"\W", "_", place)


def _asked(function: Any, otherwise: str) -> str:
    """The name of a function; for a lambda, the path that it reads."""
    name = step_name(function)
    return name if name != "<lambda>" else ".".join(read_path(function)) or otherwise
