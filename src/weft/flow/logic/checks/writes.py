"""Which fields steps change: those that there are, and in parallel each its own."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from weft.errors import Diagnostic
from weft.flow.logic.checks.problems import problem
from weft.flow.logic.checks.texts import is_harmless, written_fields
from weft.flow.logic.plans import steps_of
from weft.flow.logic.states import REPLACED, StateModel
from weft.flow.spec.nodes import ForkNode, Placed, StepNode
from weft.kernel.values import nearest


def check_writes(paths: Mapping[str, Placed], model: type[BaseModel]) -> Iterator[Diagnostic]:
    """Whether steps change what there is, and no two paths of a fork replace one field."""
    for node in steps_of(paths):
        for step in (node.step, node.compensate):
            yield from _check_fields(node, step, model)
        if node.compensate is not None and is_harmless(node.step):
            message = f"Step {node.name!r} only computes what it changes: there is nothing to undo."
            yield problem(node.site, "W128", message, "Leave `compensate` out.", "info")
    for id, placed in paths.items():
        for at, node in enumerate(placed.line.nodes):
            if isinstance(node, ForkNode):
                yield from _check_fork(paths, f"{id}/{at}", node, StateModel(model))


def _check_fields(node: StepNode, step: object, model: type[BaseModel]) -> Iterator[Diagnostic]:
    fields = model.model_fields
    for name in sorted(written_fields(step) - fields.keys()):
        near = nearest(name, fields)
        remedy = f"Did you mean {near!r}?" if near else f"It has: {', '.join(fields)}."
        message = f"Step {node.name!r} changes {name!r}, which {model.__name__} does not have."
        yield problem(node.site, "W120", message, remedy)


class _Writer(NamedTuple):
    """A step in a path of a fork."""

    path: int
    node: StepNode


def _check_fork(
    paths: Mapping[str, Placed], place: str, fork: ForkNode, states: StateModel
) -> Iterator[Diagnostic]:
    first: dict[str, _Writer] = {}
    for number in range(len(fork.paths)):
        for node in steps_of(_inside(paths, f"{place}.{number}")):
            for name in sorted(written_fields(node.step)):
                if states.reducers.get(name) != REPLACED:
                    continue
                other = first.setdefault(name, _Writer(number, node))
                if other.path != number:
                    yield _clash(fork, name, other, _Writer(number, node))


def _inside(paths: Mapping[str, Placed], id: str) -> dict[str, Placed]:
    """A path with everything in it, and what handles its failures."""
    return {
        each: placed
        for each, placed in paths.items()
        if each == id or each.startswith((f"{id}/", f"{id}!"))
    }


def _clash(fork: ForkNode, field: str, one: _Writer, two: _Writer) -> Diagnostic:
    message = (
        f"Paths {one.path} and {two.path} of fork {fork.name!r} both set {field!r}: steps "
        f"{one.node.name!r} and {two.node.name!r}."
    )
    remedy = "Let one of them, or give the field a reducer: `Annotated[…, append]`."
    return problem(two.node.site, "W119", message, remedy)
