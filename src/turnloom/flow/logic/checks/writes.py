"""Which fields steps change: those that there are, and in parallel each its own."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.checks.texts import is_harmless, repeated_fields, written_fields
from turnloom.flow.logic.plans import steps_of
from turnloom.flow.logic.states import APPENDED, REPLACED, StateModel
from turnloom.flow.spec.nodes import ForkNode, Placed, StepNode
from turnloom.kernel.values import nearest


def check_writes(paths: Mapping[str, Placed], model: type[BaseModel]) -> Iterator[Diagnostic]:
    """Whether steps change what there is, and no two paths of a fork replace one field."""
    states = StateModel(model)
    for node in steps_of(paths):
        for step in (node.step, node.compensate):
            yield from _check_fields(node, step, model)
            yield from _check_appended(node, step, states)
        if node.compensate is not None and is_harmless(node.step):
            message = f"Step {node.name!r} only computes what it changes: there is nothing to undo."
            yield problem(node.site, "W128", message, "Leave `compensate` out.", "info")
    for (path, at), writers in _parallel(paths).items():
        fork = paths[path].line.nodes[at]
        assert isinstance(fork, ForkNode)
        yield from _check_fork(fork, writers, states)


def _check_fields(node: StepNode, step: object, model: type[BaseModel]) -> Iterator[Diagnostic]:
    fields = model.model_fields
    for name in sorted(written_fields(step) - fields.keys()):
        near = nearest(name, fields)
        remedy = f"Did you mean {near!r}?" if near else f"It has: {', '.join(fields)}."
        message = f"Step {node.name!r} changes {name!r}, which {model.__name__} does not have."
        yield problem(node.site, "W120", message, remedy)


def _check_appended(node: StepNode, step: object, states: StateModel) -> Iterator[Diagnostic]:
    """Whether a step gives only what is new of lists that are appended to."""
    for name in sorted(repeated_fields(step)):
        if states.reducers.get(name) == APPENDED:
            field = f"{states.model.__name__}.{name}"
            message = f"Step {node.name!r} gives all of {field} again, and `append` doubles it."
            yield problem(node.site, "W133", message, "Give what is new only.", "warning")


class _Writer(NamedTuple):
    """A step in a path of a fork."""

    path: int
    node: StepNode


def _parallel(paths: Mapping[str, Placed]) -> dict[tuple[str, int], list[_Writer]]:
    """The steps in the paths of each fork, by where it stands; those inside of paths inside, and
    those that handle failures, count as well."""
    found: dict[tuple[str, int], list[_Writer]] = {}
    for id, placed in paths.items():
        steps = [*steps_of({id: placed})]
        while placed.owner:
            if placed.part in ("path", "rescue"):
                number = int(id.removeprefix(f"{placed.owner}/{placed.at}.").rstrip("!"))
                writers = found.setdefault((placed.owner, placed.at), [])
                writers += [_Writer(number, node) for node in steps]
            id, placed = placed.owner, paths[placed.owner]
    return found


def _check_fork(
    fork: ForkNode, writers: Iterable[_Writer], states: StateModel
) -> Iterator[Diagnostic]:
    first: dict[str, _Writer] = {}
    for writer in writers:
        for name in sorted(written_fields(writer.node.step)):
            if states.reducers.get(name) != REPLACED:
                continue
            other = first.setdefault(name, writer)
            if other.path != writer.path:
                yield _clash(fork, name, other, writer)


def _clash(fork: ForkNode, field: str, one: _Writer, two: _Writer) -> Diagnostic:
    message = (
        f"Paths {one.path} and {two.path} of fork {fork.name!r} both set {field!r}: steps "
        f"{one.node.name!r} and {two.node.name!r}."
    )
    remedy = "Let one of them, or give the field a reducer: `Annotated[…, append]`."
    return problem(two.node.site, "W119", message, remedy)
