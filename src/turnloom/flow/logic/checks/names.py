"""What steps are called: in one run, a name is for one of them."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.plans import steps_of
from turnloom.flow.spec.nodes import ApprovalNode, ForkNode, Placed, Site, StepNode
from turnloom.flow.spec.steps import AgentStep
from turnloom.kernel.values import preview

# What places of steps are written with, as in `loop[2]/draft`.
_RESERVED = "/[]#"

# Paths that are walked with what they are in, so that names in them are told apart; the others are
# walked instead of something, and may use its names.
_ALONG = ("body", "path")


def check_name(name: object, site: Site, what: str) -> Iterator[Diagnostic]:
    """Whether something is called anything."""
    if not isinstance(name, str) or not name.strip():
        message = f"The name of {what} is blank: {preview(name)}."
        yield problem(site, "W100", message, "Give it a name.")


class _Named(NamedTuple):
    """A name, where it is given, and where it has to be the only one."""

    name: str
    site: Site
    scopes: tuple[tuple[str, str], ...]


def check_names(paths: Mapping[str, Placed]) -> Iterator[Diagnostic]:
    """Whether everything has a name, and what is walked in one run has its own."""
    seen: dict[tuple[str, str, str], Site] = {}
    for name, site, scopes in _names(paths):
        yield from check_name(name, site, "a step")
        if any(each in str(name) for each in _RESERVED):
            message = f"The name {name!r} of a step has a character that places are written with."
            yield problem(site, "W100", message, f"Leave out {' '.join(_RESERVED)}.")
        keys = [(*scope, name) for scope in scopes]
        first = next((seen[key] for key in keys if key in seen), None)
        if first is not None:
            yield problem(
                site,
                "W106",
                f"Two steps are called {name!r}; the first is that of line {first.line}.",
                "Give one of them another name: `name=…`.",
            )
        for key in keys:
            seen.setdefault(key, site)
    yield from _check_agents(paths)


def _names(paths: Mapping[str, Placed]) -> Iterator[_Named]:
    for id, placed in paths.items():
        scope, line = ("scope", _scope(paths, id)), ("line", id)
        for node in placed.line.nodes:
            is_step = isinstance(node, StepNode | ApprovalNode)
            yield _Named(node.name, node.site, (line, scope) if is_step else (line,))
            if isinstance(node, ForkNode) and node.join is not None:
                yield _Named(node.join.name, node.join.site, (scope,))


def _scope(paths: Mapping[str, Placed], id: str) -> str:
    while paths[id].part in _ALONG:
        id = paths[id].owner
    return id


def _check_agents(paths: Mapping[str, Placed]) -> Iterator[Diagnostic]:
    """Whether steps of one name, of which one is walked, are one agent: it is known by its name."""
    first: dict[str, StepNode] = {}
    for node in steps_of(paths):
        if isinstance(node.step, AgentStep):
            other = first.setdefault(node.name, node)
            if not _is_same(node, other):
                yield problem(
                    node.site,
                    "W106",
                    f"Two agents are called {node.name!r}; the first is that of line "
                    f"{other.site.line}, and is another or has another context.",
                    "Give one of them another name: `name=…`.",
                )


def _is_same(a: StepNode, b: StepNode) -> bool:
    return (type(a.step), vars(a.step), *_context(a)) == (type(b.step), vars(b.step), *_context(b))


def _context(node: StepNode) -> tuple[object, ...]:
    return node.context, node.budget, node.format, node.select
