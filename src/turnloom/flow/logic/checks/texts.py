"""The source text of steps: which fields they change, and whether they do anything else."""

import ast
from collections.abc import Callable, Iterable, Iterator
from inspect import getsource, ismethod, unwrap
from textwrap import dedent
from typing import Any, is_typeddict

from turnloom.flow.logic.checks.steps import as_agent, return_hint
from turnloom.flow.spec.nodes import Unmade
from turnloom.flow.spec.steps import function_of

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
