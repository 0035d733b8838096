"""Variables, guards, hooks and tools that a program declares, with its functions in them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from turnloom.agents.spec import Callee, Tool, Toolkit
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.guards.logic.budgets import check_guards
from turnloom.guards.spec import NO_GUARDS, Guards
from turnloom.hooks.logic import order_hooks, read_hooks
from turnloom.hooks.spec import Hooks
from turnloom.kernel.arguments import as_one_of, wrong
from turnloom.kernel.code import qualified
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.kernel.values import as_data, error_text, preview
from turnloom.variables.logic.checking import KnownNames, check_variables
from turnloom.variables.logic.conditions import Condition, parse_condition
from turnloom.variables.spec import Variables

# Wraps a function of a program under a name, so that turns can call it.
MakeCallee = Callable[[Any, str], Callee]


def read_variables(
    where: str, variables: Mapping[str, Any], agents: Collection[str], toolkit: Toolkit
) -> tuple[Variables, dict[str, Callable[..., Any]], tuple[Diagnostic, ...]]:
    """Check declared variables. Return them with the functions of their triggers by name, and
    warnings.

    Raises:
        DefinitionError: the declaration is invalid.
        UsageError: a trigger has no function, or two functions have the same name.
    """
    functions: dict[str, Callable[..., Any]] = {}
    if not variables:
        return Variables(), functions, ()
    report = Report(where)
    try:
        written = _with_names(as_one_of(variables, Mapping, "`variables`"), functions)
    except RecursionError as error:
        raise _unwritable(where, "variables", variables) from error
    document = _document(where, "variables", {"context_variables": written})
    known = KnownNames(frozenset(agents), toolkit.tools)
    checked = check_variables(report, document, known)
    _refuse(where, report)
    return checked.variables, functions, tuple(sorted(report.problems))


def _with_names(value: Any, functions: dict[str, Callable[..., Any]]) -> Any:
    """Replace the functions of triggers by their names, as in a folder."""
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
        raise UsageError(f"`function` of a trigger must be callable, got {preview(function)}.")
    name = _name(function)
    if functions.setdefault(name, function) is not function:
        raise UsageError(f"Two functions of triggers are named {name!r}. Rename one of them.")
    return name


def read_guards(
    where: str, guards: Guards | Mapping[str, Any] | None, models: Mapping[str, str | None]
) -> Guards:
    """Check declared guards; `models` has the model of each agent.

    Raises:
        DefinitionError: the declaration is invalid.
    """
    if guards is None:
        return NO_GUARDS
    report = Report(where)
    written = (
        guards.model_dump(mode="json", fallback=qualified)
        if isinstance(guards, Guards)
        else dict(as_one_of(guards, Mapping, "`guards`"))
    )
    document = _document(where, "guards", written)
    read = (
        guards
        if isinstance(guards, Guards)
        else report.model(document, DocumentEntry((), written), Guards)
    )
    if read is not None:
        check_guards(report, document, (), read, models=models)
    _refuse(where, report)
    return read or NO_GUARDS


def read_code_hooks(
    where: str, hooks: Sequence[Mapping[str, Any]], agents: Collection[str], make: MakeCallee
) -> tuple[Hooks, dict[int, Callee]]:
    """Check declared hooks. Return them in order, and their functions by number.

    Raises:
        DefinitionError: the declaration is invalid.
        UsageError: a hook has no function, or one with required parameters.
    """
    if not hooks:
        return {}, {}
    report = Report(where)
    if isinstance(hooks, str) or not isinstance(cast(object, hooks), Sequence):
        raise wrong("`hooks`", hooks, "Give a list of hooks.")
    written = [_written(as_one_of(hook, Mapping, "A hook")) for hook in hooks]
    document = _document(where, "hooks", {"hooks": written})
    checked = read_hooks(report, document, DocumentEntry(("hooks",), written))
    _refuse(where, report)
    conditions: dict[int, Condition | None] = {}
    for number, each in enumerate(checked):
        agent = each.declared.agent
        if agent is not None and agent not in agents:
            message = f"A hook names the unknown agent {agent!r}."
            report.add(
                document, each.path, "W020", message, remedy="Name an agent of the workflow."
            )
        if each.declared.when is not None:
            conditions[number] = _condition(report, document, each.path, each.declared.when)
    ordered = order_hooks(report, document, checked, conditions)
    _refuse(where, report)
    names = [each["function"] for each in written]
    return ordered, {
        number: _hook(hook["function"], names[number], make) for number, hook in enumerate(hooks)
    }


def _written(hook: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the function of a hook by its name, as in a folder."""
    function = hook.get("function")
    if not callable(function):
        raise UsageError(f"`function` of a hook must be callable, got {preview(function)}.")
    return {"agent": None, **hook, "function": _name(function), "file": function.__module__}


def _hook(function: Any, name: str, make: MakeCallee) -> Callee:
    callee = make(function, name)
    wanted = ", ".join(callee.schema.parameters.get("required", ()))
    if wanted:
        raise UsageError(
            f"Hook {name!r} requires {wanted}, but hooks receive only the context. "
            "Take `context_variables` or no parameters."
        )
    return callee


def toolkit_of(
    tools: Mapping[str, Sequence[Callable[..., Any]]], make: MakeCallee
) -> tuple[Toolkit, dict[str, Callee]]:
    """Return a toolkit of the agents' tools, and the tools by name.

    Raises:
        UsageError: two functions have the same name, or one cannot be called with JSON.
    """
    functions: dict[str, Callable[..., Any]] = {}
    for function in (each for given in tools.values() for each in given):
        name = function.__name__
        if functions.setdefault(name, function) is not function:
            raise UsageError(f"Two tools are named {name!r}. Rename one of them.")
    declared = {name: Tool(function=name, file="code") for name in functions}
    bound = {agent: tuple(each.__name__ for each in given) for agent, given in tools.items()}
    called = {name: make(function, name) for name, function in functions.items()}
    return Toolkit(declared, bound), called


def _condition(report: Report, document: DeclarationFile, path: Any, text: str) -> Condition | None:
    try:
        return parse_condition(text)
    except ValueError as error:
        report.add(document, path, "W030", error_text(error))
        return None


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _document(where: str, part: str, value: Any) -> DeclarationFile:
    try:
        return DeclarationFile(f"{where}/{part}", value, as_data(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(where, part, value) from error


def _unwritable(where: str, part: str, value: Any) -> UsageError:
    return UsageError(
        f"`{part}` of {where.partition(':')[2]!r} cannot be written as JSON: {preview(value)}. "
        "Use JSON values, and functions where a workflow folder names them."
    )


def _refuse(where: str, report: Report) -> None:
    if any(problem.severity == "error" for problem in report.problems):
        raise DefinitionError(where.partition(":")[2], sorted(report.problems))
