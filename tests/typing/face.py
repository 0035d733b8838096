"""The public face by reflection: what is exported, and the types in its signatures and fields."""

import ast
import importlib
import inspect
import sys
import textwrap
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

# Modules whose names are public.
MODULES = (
    "turnloom",
    "turnloom.events",
    "turnloom.explanations",
    "turnloom.ports",
    "turnloom.testing",
)

# Classes that programs are given and do not make.
GIVEN = frozenset(
    {
        *("AgentBuilder", "ApiKeys", "AuditLog", "Authentication", "Board", "BoardView"),
        *("Context", "Definition", "Explanations", "GuardRecords", "History", "LoomView", "Run"),
        *("RunFeedback", "Schedules", "Serving", "StepContext", "Workflows"),
    }
)

# What the runtime reads of declarations, and programs have no use for.
READ_BY_THE_RUNTIME = frozenset(
    {
        *("AgentBuilder.member", "Flow.as_part", "Flow.line", "Flow.plan", "Flow.site"),
        *("Path.as_part", "Path.line", "Path.site"),
    }
)


# Values that programs hand on without looking into them.
OPAQUE = frozenset({"ApprovalRequest", "Complete"})


class Place(NamedTuple):
    """A type where it stands, whose text names it: `module.Class.method(parameter)`."""

    where: str
    type: Any
    text: str


def exported() -> dict[str, Any]:
    """Everything that is public, by `module.name`."""
    found: dict[str, Any] = {}
    for module in map(importlib.import_module, MODULES):
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return found


@cache
def names_of(module: str) -> dict[str, Any]:
    """The names that annotations of a module can mean, with those for type checkers only."""
    here = importlib.import_module(module)
    names: dict[str, Any] = dict(vars(here))
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module:
                    source = importlib.import_module(each.module)
                    names |= {n.asname or n.name: getattr(source, n.name) for n in each.names}
    return names


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


def is_ours(thing: Any) -> bool:
    """Whether a class or a function is Turnloom's."""
    return str(getattr(thing, "__module__", "")).startswith("turnloom")


def places(name: str, thing: Any) -> Iterator[Place]:
    """The types in the signatures and fields of an exported thing."""
    if isinstance(thing, type) and is_ours(thing):
        for owner in thing.__mro__:
            if is_ours(owner) and owner.__name__ not in OPAQUE:
                yield from _fields(name, owner)
                yield from _methods(name, owner)
    elif inspect.isfunction(thing):
        yield from _signature(name, thing)


def _fields(name: str, owner: type) -> Iterator[Place]:
    own = owner.__dict__.get("__annotations__", {})
    found = typing.get_type_hints(owner, names_of(owner.__module__), names_of(owner.__module__))
    texts = _field_texts(owner)
    for field in own:
        if not field.startswith("_"):
            yield Place(f"{name}.{field}", found[field], texts.get(field, ""))


def _field_texts(owner: type) -> dict[str, str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    return {
        ast.unparse(node.target): ast.unparse(node.annotation)
        for node in body.body
        if isinstance(node, ast.AnnAssign)
    }


def _methods(name: str, owner: type) -> Iterator[Place]:
    for method, each in vars(owner).items():
        short = name.rpartition(".")[2]
        hidden = method.startswith("_") and method not in ("__init__", "__call__")
        made = method == "__init__" and short in GIVEN
        if hidden or made or f"{short}.{method}" in READ_BY_THE_RUNTIME:
            continue
        function = each.fget if isinstance(each, property) else getattr(each, "__func__", each)
        if inspect.isfunction(function) and is_written(function):
            yield from _signature(f"{name}.{method}", function)


def is_written(function: Any) -> bool:
    """Whether a function stands in a file, and was not made by a decorator such as `dataclass`."""
    return is_ours(function) and not function.__code__.co_filename.startswith("<")


def _signature(name: str, function: Any) -> Iterator[Place]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    more = [each for each in (node.args.vararg, node.args.kwarg) if each]
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *more]
    texts = {each.arg: ast.unparse(each.annotation) for each in arguments if each.annotation}
    texts["return"] = ast.unparse(node.returns) if node.returns else ""
    for argument, type_ in typing.get_type_hints(function, names_of(function.__module__)).items():
        yield Place(f"{name}({argument})", type_, texts[argument])


def parts(type_: Any) -> Iterator[Any]:
    """A type and everything that it is made of."""
    yield type_
    if typing.get_origin(type_) is typing.Literal:
        return
    for each in typing.get_args(type_):
        for inner in typing.cast(list[Any], each) if isinstance(each, list) else (each,):
            yield from parts(inner)
