"""What a board declares beside its agents: variables, guards, and hooks with their functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from weft.agents.spec import Agent, Callee, Toolkit
from weft.errors import DefinitionError, UsageError
from weft.guards.logic.checking import check_guards
from weft.guards.spec import NO_GUARDS, Guards
from weft.kernel.documents import Document
from weft.kernel.models import Entry, Report
from weft.kernel.values import as_data, said
from weft.lifecycle.logic import order_hooks, read_hooks
from weft.lifecycle.spec import Hooks
from weft.reaction.spec import Plan
from weft.variables.logic.checking import Known, check_variables
from weft.variables.logic.conditions import Condition, parse_condition
from weft.variables.spec import Variables
from weft.wiring.adapters import adapter

# What the root of a run says that belongs to a board.
ROOT = "board:"


def read_variables(
    board: str, variables: Mapping[str, Any], plan: Plan, toolkit: Toolkit
) -> tuple[Variables, dict[str, Callable[..., Any]]]:
    """The variables of a board, and the functions that triggers ask, by name.

    Raises:
        DefinitionError: they do not pass their check.
        UsageError: a trigger has no function to ask, or two functions have one name.
    """
    functions: dict[str, Callable[..., Any]] = {}
    if not variables:
        return Variables(), functions
    report = Report(board)
    written = _with_names(variables, functions)
    document = _document(board, "variables", {"context_variables": written})
    known = Known(frozenset(plan.members), toolkit.tools)
    checked = check_variables(report, document, known)
    _refuse(board, report)
    return checked.variables, functions


def _with_names(value: Any, functions: dict[str, Callable[..., Any]]) -> Any:
    """A declaration as a folder would have it: the functions of triggers by name."""
    if isinstance(value, Mapping):
        found = cast(Mapping[str, Any], value)
        entries = {key: _with_names(each, functions) for key, each in found.items()}
        if found.get("type") == "function":
            entries["function"] = _registered(found.get("function"), functions)
        return entries
    if isinstance(value, list | tuple):
        return [_with_names(each, functions) for each in cast(Sequence[Any], value)]
    return value


def _registered(function: Any, functions: dict[str, Callable[..., Any]]) -> str:
    if not callable(function):
        raise UsageError(
            f"A trigger of a board has a `function` that can be called, not {function!r}."
        )
    name = _name(function)
    if functions.setdefault(name, function) is not function:
        raise UsageError(f"Two functions of triggers are called {name!r}. Rename one of them.")
    return name


def read_guards(
    board: str, guards: Guards | Mapping[str, Any] | None, agents: Sequence[Agent]
) -> Guards:
    """The guards of a board.

    Raises:
        DefinitionError: they do not pass their check.
    """
    if guards is None:
        return NO_GUARDS
    report = Report(board)
    said = guards.model_dump(mode="json") if isinstance(guards, Guards) else dict(guards)
    document = _document(board, "guards", said)
    read = guards if isinstance(guards, Guards) else report.model(document, Entry((), said), Guards)
    if read is not None:
        check_guards(report, document, (), read, {each.name: each.model for each in agents})
    _refuse(board, report)
    return read or NO_GUARDS


def read_board_hooks(
    board: str, hooks: Sequence[Mapping[str, Any]], plan: Plan
) -> tuple[Hooks, dict[int, Callee]]:
    """The hooks of a board in their order, and their functions by number.

    Raises:
        DefinitionError: they do not pass their check.
        UsageError: one has no function, or one that wants more than the context.
    """
    if not hooks:
        return {}, {}
    report = Report(board)
    written = [_written(hook) for hook in hooks]
    document = _document(board, "hooks", {"hooks": written})
    checked = read_hooks(report, document, Entry(("hooks",), written))
    _refuse(board, report)
    conditions: dict[int, Condition | None] = {}
    for number, each in enumerate(checked):
        agent = each.declared.agent
        if agent is not None and agent not in plan.members:
            message = f"A hook goes with agent {agent!r}, which is not on the board."
            report.add(document, each.path, "W020", message, "Name an agent of the board.")
        if each.declared.when is not None:
            conditions[number] = _condition(report, document, each.path, each.declared.when)
    ordered = order_hooks(report, document, checked, conditions)
    _refuse(board, report)
    names = [each["function"] for each in written]
    return ordered, {
        number: _hook(hook["function"], names[number]) for number, hook in enumerate(hooks)
    }


def _written(hook: Mapping[str, Any]) -> dict[str, Any]:
    """A hook as a folder would declare it: its function by name."""
    function = hook.get("function")
    if not callable(function):
        raise UsageError(
            f"A hook of a board has a `function` that can be called, not {function!r}."
        )
    return {"agent": None, **hook, "function": _name(function), "file": function.__module__}


def _hook(function: Any, name: str) -> Callee:
    callee = callee_of(function, name)
    wanted = ", ".join(callee.schema.parameters.get("required", ()))
    if wanted:
        raise UsageError(
            f"Hook {name!r} wants {wanted}; hooks are given the context alone. "
            "Take `context_variables`, or nothing."
        )
    return callee


def callee_of(function: Any, name: str) -> Callee:
    """A function of a board as something that turns call.

    Raises:
        UsageError: it has a parameter that JSON cannot be.
    """
    try:
        return adapter("functions.calls").FunctionCallee(function, name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name!r} cannot be called: {said(error)}.") from error


def _condition(report: Report, document: Document, path: Any, text: str) -> Condition | None:
    try:
        return parse_condition(text)
    except ValueError as error:
        report.add(document, path, "W030", said(error))
        return None


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _document(board: str, part: str, value: Any) -> Document:
    return Document(f"{ROOT}{board}/{part}", value, as_data(value))


def _refuse(board: str, report: Report) -> None:
    if any(problem.severity == "error" for problem in report.problems):
        raise DefinitionError(board, sorted(report.problems))
