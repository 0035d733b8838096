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
    return frozenset(name for value in returned for name in _names(value))


def is_harmless(step: Any) -> bool:
    """Whether a step surely does nothing but compute what it changes."""
    agent = as_agent(step)
    if agent is not None and agent.tools:
        return False
    function = _code_of(step)
    parsed = _parsed(function) if function is not None else None
    if function is None or parsed is None or parsed.decorator_list:
        return False
    names = [each.arg for each in parsed.args.args]
    state = names[1 if ismethod(function) else 0 :][:1]
    return not any(_does(node, state) for each in parsed.body for node in ast.walk(each))


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
    except (OSError, TypeError, SyntaxError, ValueError):
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


def _names(value: ast.expr) -> Iterator[str]:
    """The fields in a dict, or in an update, that is written out."""
    match value:
        case ast.Dict(keys=keys):
            for key in keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value
        case ast.IfExp(body=body, orelse=other):
            yield from _names(body)
            yield from _names(other)
        case ast.Call() if _called(value.func) in ("dict", "Update"):
            yield from (each.arg for each in value.keywords if each.arg not in (None, "confidence"))
            yield from (name for each in value.args for name in _names(each))
        case _:
            pass


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
