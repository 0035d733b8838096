"""The plan of a flow on a page, with what came of each node in the run."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from turnloom.explain.logic.describe import describe, outcome
from turnloom.explain.page.markup import (
    Content,
    Html,
    element,
    folded,
    link,
    seq_link,
    turn_anchor,
)
from turnloom.explain.spec.text import counted
from turnloom.flow import events as flow
from turnloom.flow.logic.walking import FAILURE, MAIN
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.log.spec import Event

# The class of a node by the last thing that happened to it.
_ENDS: Mapping[str, str] = {
    flow.StepCompleted.kind: "good",
    flow.StepFailed.kind: "bad",
    flow.StepSkipped.kind: "skipped",
    flow.StepCompensated.kind: "skipped",
    flow.StepStarted.kind: "open",
}
_STEPS = (
    flow.StepStarted,
    flow.StepRetried,
    flow.StepCompleted,
    flow.StepFailed,
    flow.StepSkipped,
    flow.StepCompensated,
)
_DECISIONS = (
    flow.BranchTaken,
    flow.ForkOpened,
    flow.ForkFailed,
    flow.ForkJoined,
    flow.LoopPassed,
    flow.LoopEnded,
    flow.ApprovalDecided,
)

# The compensation of a step is about that step, and has another name.
_COMPENSATED = flow.StepCompensated.kind

# Lines about a node that are not folded.
_FEW = 6

# A pattern that matches nothing: paths that were not taken.
_NEVER = r"(?!)"

Node = Mapping[str, Json]


def write_plan(plan: Mapping[str, Json], events: Sequence[Event]) -> Html:
    """The paths of a flow as nested lists: steps in order, the paths of a fork side by side."""
    return element("div", _Plan(plan, events).write(), class_="plan")


class _Plan:
    """Writes one plan. The places of a run are those of nodes, with the passes of loops and the
    cases that were taken; patterns of places find what happened to a node."""

    def __init__(self, plan: Mapping[str, Json], events: Sequence[Event]) -> None:
        self._paths = as_object(plan.get("paths")) or {}
        self._events = [event for event in events if hasattr(event.data, "place")]
        self._entered: dict[str, set[str]] = defaultdict(set)
        for event in self._events:
            self._enter(event.data)

    def _enter(self, fact: Any) -> None:
        """Note under which name a path was entered."""
        match fact:
            case flow.BranchTaken(path=path, case=case):
                self._entered[path].add(f":{case}")
            case flow.ApprovalDecided(path=path, outcome=outcome):
                self._entered[path].add(f":{outcome}")
            case flow.StepFailed(handler=handler):
                self._entered[handler].add("!")
            case _:
                return

    def write(self) -> Iterator[Html]:
        """The main path, and that for failures."""
        yield self._path(MAIN, "")
        if FAILURE in self._paths:
            yield element("p", "When the flow fails:", class_="soft")
            yield self._path(FAILURE, "!/")

    def _path(self, id: str, prefix: str) -> Html:
        nodes = as_array(self._paths.get(id)) or ()
        return element("ol", (self._node(id, at, each, prefix) for at, each in enumerate(nodes)))

    def _node(self, path: str, at: int, given: Json, prefix: str) -> Html:
        node = as_object(given)
        if node is None:  # the flow ends here
            return element("li", element("b", str(given)), class_="node end")
        kind, name = _kind_and_name(node)
        place = f"{prefix}{re.escape(name)}"
        happened = [*self._happened(place, name if kind == "step" else None)]
        inner = [*self._inner(f"{path}/{at}.", kind, place, node)]
        joins = as_object(node.get("join"))
        return element(
            "li",
            _label(kind, name, node, happened),
            element("div", inner, class_="ways") if inner else None,
            self._join(place, joins) if joins else None,
            class_=f"node {kind} {_end(happened)}",
        )

    def _join(self, place: str, join: Node) -> Html:
        name = str(join.get("name"))
        happened = [*self._happened(place, name)]
        return element("div", _label("join", name, join, happened), class_=f"node {_end(happened)}")

    def _inner(self, start: str, kind: str, place: str, node: Node) -> Iterator[Html]:
        """The paths of a node, whose ids begin with `start`, each under its name."""
        for id in self._paths:
            label = id.removeprefix(start)
            if id.startswith(start) and "/" not in label:
                title = _way(kind, label, node)
                entered = self._entry(id, kind, label, place)
                yield element(
                    "div",
                    element("p", title, class_="way-name"),
                    self._path(id, entered),
                    class_="way",
                )

    def _entry(self, id: str, kind: str, label: str, place: str) -> str:
        """The pattern of the places in a path."""
        if kind == "fork" and label.rstrip("!").isdigit():
            rescue = "!" if label.endswith("!") else ""
            return rf"{place}\.{label.rstrip('!')}/{rescue}"
        if kind == "loop":
            return rf"{place}\[\d+\]/"
        if label == "low":
            return rf"{place}\?/"
        names = "|".join(map(re.escape, sorted(self._entered[id]))) or _NEVER
        return f"{place}(?:{names})/"

    def _happened(self, place: str, step: str | None) -> Iterator[Event]:
        """The events of a step, or the decisions of another node, at a place."""
        pattern = re.compile(place)
        kinds = _DECISIONS if step is None else _STEPS
        for event in self._events:
            fact: Any = event.data
            is_here = isinstance(event.data, kinds) and pattern.fullmatch(fact.place)
            if is_here and (step is None or event.kind == _COMPENSATED or fact.step == step):
                yield event


def _kind_and_name(node: Node) -> tuple[str, str]:
    for kind in ("branch", "fork", "loop", "approval"):
        if kind in node:
            return kind, str(node[kind])
    return "step", str(node.get("name"))


def _way(kind: str, label: str, node: Node) -> str:
    """The name of a path of a node."""
    if kind == "branch" and label.isdigit():
        return f"if {preview((as_array(node.get('cases')) or ())[int(label)])}"
    if kind == "fork" and label.rstrip("!").isdigit():
        return f"path {int(label.rstrip('!')) + 1}{' failed' if label.endswith('!') else ''}"
    names = {"body": "each pass", "low": "low confidence", "rejected": "rejected"}
    return names.get(label) or {"failed": "on failure", "late": "no answer"}.get(
        label.partition(".")[0], label
    )


def _label(kind: str, name: str, node: Node, happened: Sequence[Event]) -> Content:
    details = [*_settings(kind, node)]
    return [
        element(
            "p",
            element("span", kind, class_="tag"),
            " ",
            element("b", name),
            element("span", f" {', '.join(details)}", class_="soft") if details else None,
        ),
        _events(_told(happened)) if happened else None,
    ]


def _events(told: Sequence[Event]) -> Html:
    found = element("ul", map(_event, told), class_="happened")
    return found if len(told) <= _FEW else folded(counted(len(told), "event"), found)


def _settings(kind: str, node: Node) -> Iterator[str]:
    if kind == "loop":
        yield f"until {node.get('until')}, at most {node.get('max_iterations')} passes"
    if kind == "branch":
        yield f"on {node.get('on')}"
    if kind == "approval":
        yield f"by {node.get('approver')}"


def _told(happened: Sequence[Event]) -> list[Event]:
    """The events of a node without the beginnings of steps that ended, unless an agent's turn
    began."""
    *before, last = happened
    return [e for e in before if not isinstance(e.data, flow.StepStarted) or e.data.turn] + [last]


def _event(event: Event) -> Html:
    fact: Any = event.data
    if isinstance(fact, flow.StepStarted):
        turn = link(turn_anchor(fact.turn), f"turn {fact.turn}") if fact.turn else None
        return element("li", f"attempt {fact.attempt} began ", seq_link(event.seq), " ", turn)
    is_named = isinstance(fact, _STEPS) and not isinstance(fact, flow.StepCompensated)
    says = outcome(fact) if is_named else describe(fact)
    return element("li", f"{says} ", seq_link(event.seq))


def _end(happened: Sequence[Event]) -> str:
    """The class of a node by what happened to it last."""
    return _ENDS.get(happened[-1].kind, "good") if happened else "untaken"
