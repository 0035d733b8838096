"""Checks of steps: names, signatures, and the fields they change."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import getsource, isasyncgenfunction, isgeneratorfunction, ismethod, unwrap
from textwrap import dedent
from typing import Any, NamedTuple, cast, get_type_hints, is_typeddict

from pydantic import BaseModel

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.plans import steps_of
from turnloom.flow.logic.states import APPENDED, REPLACED, StateModel
from turnloom.flow.spec.builder import Path
from turnloom.flow.spec.nodes import ApprovalNode, ForkNode, PlacedPath, Site, StepNode, Unmade
from turnloom.flow.spec.steps import AgentStep, function_of
from turnloom.guards.spec import Selection
from turnloom.kernel.code import fits
from turnloom.kernel.values import nearest, preview

# Annotated results that no step can return.
_NO_UPDATE = (BaseModel, str, int, float, list, tuple, set)


def check_step(node: StepNode) -> Iterator[Diagnostic]:
    """Check the code of a step and of its compensation."""
    what = f"Step {node.name!r}"
    agent = as_agent(node.step)
    if agent is not None:
        yield from _check_agent(what, agent, node.site)
        yield from _check_candidates(node, agent)
    else:
        yield from _check_code(what, node.step, node.site)
    if isinstance(node.compensate, AgentStep):
        message = f"`compensate` of step {node.name!r} is an agent."
        yield problem(node.site, "W121", message, "Give a function of the state and the context.")
    elif node.compensate is not None:
        yield from _check_code(f"`compensate` of step {node.name!r}", node.compensate, node.site)


def _check_candidates(node: StepNode, agent: AgentStep[Any, Any]) -> Iterator[Diagnostic]:
    """Check that the candidates of a selection are engines of the step."""
    if isinstance(node.select, Selection):
        for name in (each for each in node.select.candidates if each not in agent.engines):
            message = f"`select` of step {node.name!r} names {name!r}, which is not in `engines`."
            known = ", ".join(agent.engines) or "none"
            yield problem(node.site, "W126", message, f"Use one of: {known}.")


def as_agent(step: Any) -> AgentStep[Any, Any] | None:
    """A step as an agent step, if it is one."""
    return cast(AgentStep[Any, Any], step) if isinstance(step, AgentStep) else None


def _check_code(what: str, step: Any, site: Site) -> Iterator[Diagnostic]:
    if isinstance(step, Unmade):
        message = f"{what}: cannot create a {step.kind.__name__}: {step.why}."
        yield problem(site, "W121", message, f"Pass an instance: `{step.kind.__name__}(…)`.")
        return
    if isinstance(step, Path):
        message = f"{what} is a path or a flow, expected one step."
        remedy = "Give a step. As `join`, a path of one step is allowed, to give it settings."
        yield problem(site, "W121", message, remedy)
        return
    function = function_of(step)
    remedy = "Use the parameters `(state)` or `(state, ctx)`."
    if not callable(function):
        yield problem(site, "W121", f"{what} is {preview(step)}, which cannot be called.", remedy)
    elif not fits(function, 1) and not fits(function, 2):
        message = f"{what} does not take one or two parameters."
        yield problem(site, "W121", message, remedy)
    else:
        yield from _check_given(what, function, site)


def _check_given(what: str, function: Callable[..., Any], site: Site) -> Iterator[Diagnostic]:
    """Check that a step can return its changes."""
    if isgeneratorfunction(function) or isasyncgenfunction(function):
        message = f"{what} is a generator."
        yield problem(site, "W121", message, "Return the changes once.")
    given = return_hint(function)
    if isinstance(given, type) and issubclass(given, _NO_UPDATE):
        message = f"{what} returns a {given.__name__}."
        yield problem(site, "W121", message, "Return the fields that change, as a dict.")


def return_hint(function: Callable[..., Any]) -> Any:
    """The annotated result of a function, if it can be resolved."""
    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError):
        return None


def _check_agent(what: str, step: AgentStep[Any, Any], site: Site) -> Iterator[Diagnostic]:
    kind, plain = type(step), cast(type[AgentStep[Any, Any]], AgentStep)
    if kind.apply is plain.apply:
        message = f"{what} does not define what the answer changes."
        yield problem(site, "W121", message, "Define `apply(self, state, answer, context)`.")
    elif not fits(step.apply, 3):
        message = f"`apply` of {what.lower()} does not take three parameters."
        yield problem(site, "W121", message, "Define it as `apply(self, state, answer, context)`.")
    if kind.build_messages is not plain.build_messages:
        if not fits(step.build_messages, 2):
            message = f"`build_messages` of {what.lower()} does not take two parameters."
            yield problem(
                site, "W121", message, "Define it as `build_messages(self, state, context)`."
            )
    elif kind.user_prompt is plain.user_prompt or not fits(step.user_prompt, 1):
        message = f"{what} does not define a prompt for its agent."
        yield problem(site, "W121", message, "Define `user_prompt(self, state)`.")
    yield from _check_tools(what, step, site)
    output = cast(object, step.output_type)
    if output is not None and not (isinstance(output, type) and issubclass(output, BaseModel)):
        message = f"`output_type` of {what.lower()} is {preview(output)}."
        yield problem(site, "W121", message, "Give a pydantic model, or omit it for text.")


def _check_tools(what: str, step: AgentStep[Any, Any], site: Site) -> Iterator[Diagnostic]:
    for tool in cast(Sequence[Any], step.tools):
        if not callable(tool) or not getattr(tool, "__name__", "").isidentifier():
            message = f"One of `tools` of {what.lower()} is {preview(tool)}."
            yield problem(
                site, "W126", message, "Give functions defined with `def`: a tool needs a name."
            )


# The special characters of places, as in `loop[2]/draft`.
_RESERVED = "/[]#"

# Paths that run together with the path around them, so their names must differ from its names; the
# others are alternatives, and may repeat names.
_ALONG = ("body", "path")


def check_name(name: object, site: Site, what: str) -> Iterator[Diagnostic]:
    """Check that a name is not blank."""
    if not isinstance(name, str) or not name.strip():
        message = f"The name of {what} is blank: {preview(name)}."
        yield problem(site, "W100", message, "Give it a name.")


class _Named(NamedTuple):
    """A name, its site, and the scopes in which it must be unique."""

    name: str
    site: Site
    scopes: tuple[tuple[str, str], ...]


def check_names(paths: Mapping[str, PlacedPath]) -> Iterator[Diagnostic]:
    """Check that names are valid and unique."""
    seen: dict[tuple[str, str, str], Site] = {}
    for name, site, scopes in _names(paths):
        yield from check_name(name, site, "a step")
        if any(each in str(name) for each in _RESERVED):
            message = f"The name {name!r} of a step has a reserved character."
            yield problem(site, "W100", message, f"Do not use {' '.join(_RESERVED)} in names.")
        keys = [(*scope, name) for scope in scopes]
        first = next((seen[key] for key in keys if key in seen), None)
        if first is not None:
            yield problem(
                site,
                "W106",
                f"Two steps have the name {name!r}; the first is on line {first.line}.",
                "Give one of them another name: `name=…`.",
            )
        for key in keys:
            seen.setdefault(key, site)
    yield from _check_agents(paths)


def _names(paths: Mapping[str, PlacedPath]) -> Iterator[_Named]:
    for id, placed in paths.items():
        scope, line = ("scope", _scope(paths, id)), ("line", id)
        for node in placed.line.nodes:
            is_step = isinstance(node, StepNode | ApprovalNode)
            yield _Named(node.name, node.site, (line, scope) if is_step else (line,))
            if isinstance(node, ForkNode) and node.join is not None:
                yield _Named(node.join.name, node.join.site, (scope,))


def _scope(paths: Mapping[str, PlacedPath], id: str) -> str:
    while paths[id].part in _ALONG:
        id = paths[id].owner
    return id


def _check_agents(paths: Mapping[str, PlacedPath]) -> Iterator[Diagnostic]:
    """Check that agent steps with the same name are the same agent."""
    first: dict[str, StepNode] = {}
    for node in steps_of(paths):
        if isinstance(node.step, AgentStep):
            other = first.setdefault(node.name, node)
            if not _is_same(node, other):
                yield problem(
                    node.site,
                    "W106",
                    f"Two different agents have the name {node.name!r}; the first is on line "
                    f"{other.site.line}.",
                    "Give one of them another name: `name=…`.",
                )


def _is_same(a: StepNode, b: StepNode) -> bool:
    return (type(a.step), vars(a.step), *_context(a)) == (type(b.step), vars(b.step), *_context(b))


def _context(node: StepNode) -> tuple[object, ...]:
    return node.context, node.budget, node.format, node.select


# Functions without side effects.
_HARMLESS = frozenset(
    "Update abs all any bool dict divmod enumerate filter float frozenset getattr hasattr int "
    "isinstance len list map max min range repr reversed round set sorted str sum tuple zip".split()
)
_DOES = (ast.Await, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def written_fields(step: Any) -> frozenset[str]:
    """The fields that a step changes, by its return statements or its annotation."""
    function = _code_of(step)
    if function is None:
        return frozenset()
    hint = return_hint(function)
    if is_typeddict(hint):
        return frozenset(hint.__annotations__)
    parsed = _parsed(function)
    returned = _returned(parsed.body) if parsed else ()
    return frozenset(name for value in returned for name, _ in _changes(value))


def repeated_fields(step: Any) -> frozenset[str]:
    """The fields of which a step certainly returns the state's value with additions."""
    function = _code_of(step)
    parsed = _parsed(function) if function is not None else None
    if function is None or parsed is None:
        return frozenset()
    state = _state_of(function, parsed)
    changes = [each for value in _returned(parsed.body) for each in _changes(value)]
    return frozenset(name for name, given in changes if _repeats(given, name, state))


def is_harmless(step: Any) -> bool:
    """Whether a step certainly has no side effects."""
    agent = as_agent(step)
    if agent is not None and agent.tools:
        return False
    function = _code_of(step)
    parsed = _parsed(function) if function is not None else None
    if function is None or parsed is None or parsed.decorator_list:
        return False
    state = _state_of(function, parsed)
    return not any(_does(node, state) for each in parsed.body for node in ast.walk(each))


def _state_of(function: Callable[..., Any], parsed: _Function) -> list[str]:
    """The name of a function's state parameter."""
    names = [each.arg for each in parsed.args.args]
    return names[1 if ismethod(function) else 0 :][:1]


def _code_of(step: Any) -> Callable[..., Any] | None:
    """The function that returns the changes of a step."""
    if isinstance(step, Unmade):
        return None
    agent = as_agent(step)
    function: Any = function_of(step) if agent is None else agent.apply
    return function if callable(function) else None


def _parsed(function: Callable[..., Any]) -> _Function | None:
    """The syntax tree of a function, if its source is available and current."""
    try:
        (parsed,) = ast.parse(dedent(getsource(function))).body
    # Python 3.11 raises SystemError if a thread switches while it makes nodes (gh-106905).
    except (OSError, TypeError, SyntaxError, SystemError, ValueError):
        return None
    if isinstance(parsed, _Function) and parsed.name == unwrap(function).__name__:
        return parsed
    return None


def _returned(body: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """The returned expressions, without those of nested functions."""
    for node in body:
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _returned(ast.iter_child_nodes(node))


def _changes(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The fields and values in a literal dict or `Update`."""
    match value:
        case ast.Dict(keys=keys, values=values):
            for key, given in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, given
        case ast.IfExp(body=body, orelse=other):
            yield from _changes(body)
            yield from _changes(other)
        case ast.Call() if _called(value.func) in ("dict", "Update"):
            for each in value.keywords:
                if each.arg not in (None, "confidence"):
                    yield each.arg, each.value
            yield from (change for each in value.args for change in _changes(each))
        case _:
            pass


def _repeats(given: ast.expr, name: str, state: list[str]) -> bool:
    """Whether a list extends a field of the state: `[*state.x, …]`, `state.x + […]`."""
    match given:
        case ast.List(elts=parts):
            return any(_is_field(e.value, name, state) for e in parts if isinstance(e, ast.Starred))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            sides = (left, right)
            return any(_is_field(e, name, state) or _repeats(e, name, state) for e in sides)
        case _:
            return False


def _is_field(value: ast.expr, name: str, state: list[str]) -> bool:
    match value:
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            return owner in state and attribute == name
        case _:
            return False


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name, value=ast.Name()):
            return name
        case ast.Subscript(value=inner):
            return _called(inner)
        case _:
            return ""


def _does(node: ast.AST, state: list[str]) -> bool:
    """Whether code may have a side effect; methods of the state are assumed to have none."""
    if isinstance(node, ast.Call):
        return not (_is_plain(node.func) or _is_asked(node.func, state))
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, _DOES)


def _is_plain(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return name in _HARMLESS
        case _:
            return False


def _is_asked(function: ast.expr, state: list[str]) -> bool:
    """Whether a call is of a method of the state or a constant, directly or in a chain."""
    if not isinstance(function, ast.Attribute):
        return False
    inner = function.value
    while isinstance(inner, ast.Attribute | ast.Subscript | ast.Call):
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    return isinstance(inner, ast.Constant) or isinstance(inner, ast.Name) and inner.id in state


def check_writes(paths: Mapping[str, PlacedPath], model: type[BaseModel]) -> Iterator[Diagnostic]:
    """Check that changed fields exist, and that no two paths of a fork replace the same field."""
    states = StateModel(model)
    for node in steps_of(paths):
        for step in (node.step, node.compensate):
            yield from _check_fields(node, step, model)
            yield from _check_appended(node, step, states)
        if node.compensate is not None and is_harmless(node.step):
            message = f"Step {node.name!r} has no side effects: there is nothing to compensate."
            yield problem(node.site, "W128", message, "Leave `compensate` out.", severity="info")
    for (path, at), writers in _parallel(paths).items():
        fork = paths[path].line.nodes[at]
        assert isinstance(fork, ForkNode)
        yield from _check_fork(fork, writers, states)


def _check_fields(node: StepNode, step: object, model: type[BaseModel]) -> Iterator[Diagnostic]:
    fields = model.model_fields
    for name in sorted(written_fields(step) - fields.keys()):
        near = nearest(name, fields)
        remedy = f"Did you mean {near!r}?" if near else f"Fields: {', '.join(fields)}."
        message = f"Step {node.name!r} changes {name!r}, which {model.__name__} does not have."
        yield problem(node.site, "W120", message, remedy)


def _check_appended(node: StepNode, step: object, states: StateModel) -> Iterator[Diagnostic]:
    """Warn if a step returns a whole list that `append` extends."""
    for name in sorted(repeated_fields(step)):
        if states.reducers.get(name) == APPENDED:
            field = f"{states.model.__name__}.{name}"
            message = f"Step {node.name!r} returns all of {field} again, so `append` doubles it."
            yield problem(
                node.site, "W133", message, "Return the new items only.", severity="warning"
            )


class _Writer(NamedTuple):
    """A step in a path of a fork."""

    path: int
    node: StepNode


def _parallel(paths: Mapping[str, PlacedPath]) -> dict[tuple[str, int], list[_Writer]]:
    """The steps in the paths of each fork, by its position; those in nested paths and in paths for
    failures included."""
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
    remedy = "Set it in one path only, or give the field a reducer: `Annotated[…, append]`."
    return problem(two.node.site, "W119", message, remedy)
