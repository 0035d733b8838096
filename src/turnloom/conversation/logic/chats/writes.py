"""Tools that set variables: in place, as Turnloom keeps them, or in what they give, as AG2 does."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from turnloom.conversation.logic.chats.programs import Function, Program

# The parameter that gets the variables, there and here.
CONTEXT = "context_variables"

# What changes variables in place.
CHANGING = frozenset({"set", "update", "remove", "clear", "pop", "setdefault"})


class Writing(NamedTuple):
    """How a function sets variables: the line of its first write in place, and that of the first
    result that has them."""

    in_place: int | None
    given: int | None


def writing(program: Program, function: Function) -> Writing | None:
    """How a function sets the variables that it gets; nothing if it gets none, or if it is not
    known what becomes of them."""
    name = _parameter(program, function)
    nodes = [node for each in function.body for node in ast.walk(each)]
    if name is None or any(_is_taken_along(node, name) for node in nodes):
        return None
    parts = [node for node in nodes if isinstance(node, ast.expr)]
    written = [part.lineno for part in parts if _writes(part, name)]
    given = [part.lineno for part in parts if _gives(program, part)]
    return Writing(min(written, default=None), min(given, default=None))


def _parameter(program: Program, function: Function) -> str | None:
    declared = function.args
    for each in (*declared.posonlyargs, *declared.args, *declared.kwonlyargs):
        hint = ast.walk(each.annotation) if each.annotation else ()
        if each.arg == CONTEXT or "ContextVariables" in map(program.named, hint):
            return each.arg
    return None


def _is_taken_along(node: ast.AST, name: str) -> bool:
    """Whether the variables become something else's: the name is given another value, or what a
    call makes of them is used."""
    match node:
        case ast.Name(id=id, ctx=ast.Store()):
            return id == name
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Return(value=value):
            calls = (each for each in ast.walk(value or node) if isinstance(each, ast.Call))
            return any(_is_plain(each, name) for call in calls for each in call.args)
        case _:
            return False


def _is_plain(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _writes(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr=attr)):
            return attr in CHANGING and _holds(held, name)
        case ast.Subscript(value=held, ctx=ast.Store() | ast.Del()):
            return _holds(held, name)
        case _:
            return False


def _holds(node: ast.expr, name: str) -> bool:
    """Whether something is the variables: by their name, or as their `data`."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return _is_plain(node, name)


def _gives(program: Program, node: ast.expr) -> bool:
    """Whether a result with variables is made there."""
    return (
        isinstance(node, ast.Call)
        and program.named(node.func) == "ReplyResult"
        and any(each.arg in (CONTEXT, None) for each in node.keywords)
    )


# ------------------------------------------------------------------ which functions are tools

# Methods of agents whose result makes a function a tool, as a decorator or called with it.
REGISTERING = frozenset({"register_for_llm", "register_for_execution"})

# Calls that are given tools, and the arguments that these are.
TAKING = {"register_function": ("f",), "Tool": ("func_or_tool",)}


def tools_of(program: Program) -> Iterator[Function]:
    """The functions that the program makes tools of chats."""
    handed = {name for call in program.calls for name in _handed(program, call)}
    for function in program.functions:
        if function.name in handed or any(
            _registers(program, each) for each in function.decorator_list
        ):
            yield function


def _registers(program: Program, node: ast.expr) -> bool:
    """Whether what an expression gives makes a tool of a function."""
    made = node.func if isinstance(node, ast.Call) else node
    is_method = isinstance(made, ast.Attribute) and made.attr in REGISTERING
    return is_method or program.named(made) == "tool"


def _handed(program: Program, call: ast.Call) -> Iterator[str]:
    """The names of functions that a call takes for tools."""
    given = {each.arg: each.value for each in call.keywords if each.arg}
    wanted = TAKING.get(program.named(call.func), ())
    if wanted or _registers(program, call.func):
        yield from (each.id for each in call.args[:1] if isinstance(each, ast.Name))
    elif program.named(call.func):
        wanted = ("functions",)
    for value in (given[key] for key in wanted if key in given):
        held = (each.value for each in program.reached(value) if each.value)
        for node in (value, *held):
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
