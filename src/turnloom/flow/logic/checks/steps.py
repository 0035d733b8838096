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
from turnloom.flow.spec.nodes import ApprovalNode, ForkNode, Placed, Site, StepNode, Unmade
from turnloom.flow.spec.steps import AgentStep, function_of
from turnloom.guards.spec import Selection
from turnloom.kernel.code import fits
from turnloom.kernel.values import nearest, preview

# What no step gives, although a program may say that it does.
_NO_UPDATE = (BaseModel, str, int, float, list, tuple, set)


def check_step(node: StepNode) -> Iterator[Diagnostic]:
    """Whether a step, and what makes up for it, can be taken."""
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
    """Whether whoever may be selected is there."""
    if isinstance(node.select, Selection):
        for name in (each for each in node.select.candidates if each not in agent.engines):
            message = f"`select` of step {node.name!r} names {name!r}, which is none of `engines`."
            known = ", ".join(agent.engines) or "none"
            yield problem(node.site, "W126", message, f"Correct it. There is: {known}.")


def as_agent(step: Any) -> AgentStep[Any, Any] | None:
    """A step that an agent takes, if one does."""
    return cast(AgentStep[Any, Any], step) if isinstance(step, AgentStep) else None


def _check_code(what: str, step: Any, site: Site) -> Iterator[Diagnostic]:
    if isinstance(step, Unmade):
        message = f"{what} cannot be made of {step.kind.__name__}: {step.why}."
        yield problem(site, "W121", message, f"Give one that is made: `{step.kind.__name__}(…)`.")
        return
    if isinstance(step, Path):
        message = f"{what} is a path or a flow, where one step is wanted."
        remedy = "Give a step. As `join`, a path of one step may give it settings, and no more."
        yield problem(site, "W121", message, remedy)
        return
    function = function_of(step)
    remedy = "Let it take the state, or the state and the context: `(state)`, `(state, ctx)`."
    if not callable(function):
        yield problem(site, "W121", f"{what} is {preview(step)}, which cannot be called.", remedy)
    elif not fits(function, 1) and not fits(function, 2):
        message = f"{what} can be called neither with one value nor with two."
        yield problem(site, "W121", message, remedy)
    else:
        yield from _check_given(what, function, site)


def _check_given(what: str, function: Callable[..., Any], site: Site) -> Iterator[Diagnostic]:
    """Whether a step can give what it changes."""
    if isgeneratorfunction(function) or isasyncgenfunction(function):
        message = f"{what} gives one thing after the other."
        yield problem(site, "W121", message, "Let it return what it changes, once.")
    given = return_hint(function)
    if isinstance(given, type) and issubclass(given, _NO_UPDATE):
        message = f"{what} gives a {given.__name__}."
        yield problem(site, "W121", message, "Let it give the fields that change: a dict.")


def return_hint(function: Callable[..., Any]) -> Any:
    """What a function is annotated to give, if that can be said."""
    try:
        return get_type_hints(function).get("return")
    except (NameError, TypeError, AttributeError):
        return None


def _check_agent(what: str, step: AgentStep[Any, Any], site: Site) -> Iterator[Diagnostic]:
    kind, plain = type(step), cast(type[AgentStep[Any, Any]], AgentStep)
    if kind.apply is plain.apply:
        message = f"{what} does not say what the answer changes."
        yield problem(site, "W121", message, "Define `apply(self, state, answer, context)`.")
    elif not fits(step.apply, 3):
        message = f"`apply` of {what.lower()} cannot be called with three values."
        yield problem(site, "W121", message, "Let it be `apply(self, state, answer, context)`.")
    if kind.build_messages is not plain.build_messages:
        if not fits(step.build_messages, 2):
            message = f"`build_messages` of {what.lower()} cannot be called with two values."
            yield problem(
                site, "W121", message, "Let it be `build_messages(self, state, context)`."
            )
    elif kind.user_prompt is plain.user_prompt or not fits(step.user_prompt, 1):
        message = f"{what} does not say what its agent is asked about the state."
        yield problem(site, "W121", message, "Define `user_prompt(self, state)`.")
    yield from _check_tools(what, step, site)
    output = cast(object, step.output_type)
    if output is not None and not (isinstance(output, type) and issubclass(output, BaseModel)):
        message = f"`output_type` of {what.lower()} is {preview(output)}."
        yield problem(site, "W121", message, "Give a pydantic model, or leave it out for text.")


def _check_tools(what: str, step: AgentStep[Any, Any], site: Site) -> Iterator[Diagnostic]:
    for tool in cast(Sequence[Any], step.tools):
        if not callable(tool) or not getattr(tool, "__name__", "").isidentifier():
            message = f"One of `tools` of {what.lower()} is {preview(tool)}."
            yield problem(site, "W126", message, "Give functions that have names: use `def`.")


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


# What may be called without doing anything to the world.
_HARMLESS = frozenset(
    "Update abs all any bool dict divmod enumerate filter float frozenset getattr hasattr int "
    "isinstance len list map max min range repr reversed round set sorted str sum tuple zip".split()
)
_DOES = (ast.Await, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def written_fields(step: Any) -> frozenset[str]:
    """The fields that a step says that it changes: in what it returns, or in its annotation."""
    function = _code_of(step)
    if function is None:
        return frozenset()
    said = return_hint(function)
    if is_typeddict(said):
        return frozenset(said.__annotations__)
    parsed = _parsed(function)
    returned = _returned(parsed.body) if parsed else ()
    return frozenset(name for value in returned for name, _ in _changes(value))


def repeated_fields(step: Any) -> frozenset[str]:
    """The fields of which a step surely gives all that the state has, and more."""
    function = _code_of(step)
    parsed = _parsed(function) if function is not None else None
    if function is None or parsed is None:
        return frozenset()
    state = _state_of(function, parsed)
    changes = [each for value in _returned(parsed.body) for each in _changes(value)]
    return frozenset(name for name, given in changes if _repeats(given, name, state))


def is_harmless(step: Any) -> bool:
    """Whether a step surely does nothing but compute what it changes."""
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
    """What a function calls the state."""
    names = [each.arg for each in parsed.args.args]
    return names[1 if ismethod(function) else 0 :][:1]


def _code_of(step: Any) -> Callable[..., Any] | None:
    """The function whose result is what a step changes."""
    if isinstance(step, Unmade):
        return None
    agent = as_agent(step)
    function: Any = function_of(step) if agent is None else agent.apply
    return function if callable(function) else None


def _parsed(function: Callable[..., Any]) -> _Function | None:
    """A function as it is written, if its source is there and still of it."""
    try:
        (parsed,) = ast.parse(dedent(getsource(function))).body
    # Python 3.11 raises SystemError if a thread switches while it makes nodes (gh-106905).
    except (OSError, TypeError, SyntaxError, SystemError, ValueError):
        return None
    if isinstance(parsed, _Function) and parsed.name == unwrap(function).__name__:
        return parsed
    return None


def _returned(body: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What is returned there; functions inside return to somebody else."""
    for node in body:
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _returned(ast.iter_child_nodes(node))


def _changes(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The fields in a dict, or in an update, that is written out, and what each is given."""
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
    """Whether a list is made of a field of the state and more: `[*state.x, …]`, `state.x + […]`."""
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
    """Whether code may do something to the world; what the state has is asked freely."""
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
    """Whether a method of the state, of a constant, or of what these give is called."""
    if not isinstance(function, ast.Attribute):
        return False
    inner = function.value
    while isinstance(inner, ast.Attribute | ast.Subscript | ast.Call):
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    return isinstance(inner, ast.Constant) or isinstance(inner, ast.Name) and inner.id in state


def check_writes(paths: Mapping[str, Placed], model: type[BaseModel]) -> Iterator[Diagnostic]:
    """Whether steps change what there is, and no two paths of a fork replace one field."""
    states = StateModel(model)
    for node in steps_of(paths):
        for step in (node.step, node.compensate):
            yield from _check_fields(node, step, model)
            yield from _check_appended(node, step, states)
        if node.compensate is not None and is_harmless(node.step):
            message = f"Step {node.name!r} only computes what it changes: there is nothing to undo."
            yield problem(node.site, "W128", message, "Leave `compensate` out.", severity="info")
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
            yield problem(node.site, "W133", message, "Give what is new only.", severity="warning")


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
