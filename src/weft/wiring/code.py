"""The functions that a workflow names, from the code in its folder."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from weft.agents.spec import Callee
from weft.conversation.logic.rosters import (
    declared_hooks,
    declared_message_hooks,
    declared_tools,
)
from weft.errors import DefinitionError, Diagnostic
from weft.kernel.documents import Folder
from weft.kernel.values import Json, as_array, as_object
from weft.wiring.adapters import adapter


class Code:
    """The functions that a workflow names, from its code; what cannot be had is a problem."""

    def __init__(self, modules: Any, folder: Folder, broken: frozenset[str]) -> None:
        self.modules = modules
        self.problems: list[Diagnostic] = []
        self._folder = folder
        self._broken = broken

    def tools(self) -> dict[str, Callee]:
        """The tools by name."""
        found: dict[str, Callee] = {}
        for place, tool in declared_tools(self._folder, self._broken):
            function = self._function(tool.file, tool.function, place)
            callee = function and self._callee(function, tool.title, tool.description, place)
            if callee is not None:
                found[tool.title] = callee
        return found

    def hooks(self) -> dict[int, Callee]:
        """The hooks by their place."""
        found: dict[int, Callee] = {}
        for number, (place, hook) in enumerate(declared_hooks(self._folder, self._broken)):
            function = self._function(hook.file, hook.function, place)
            callee = function and self._callee(function, hook.title, hook.description, place)
            if callee is not None:
                found[number] = self._unasked(callee, hook.title, place)
        return found

    def message_hooks(self) -> dict[int, Callable[..., Awaitable[Any]]]:
        """The message hooks by their place."""
        found: dict[int, Callable[..., Awaitable[Any]]] = {}
        declared = declared_message_hooks(self._folder, self._broken)
        for number, (place, hook) in enumerate(declared):
            function = self._function(hook.filename, hook.function, place)
            if function is not None:
                found[number] = adapter("functions").detached(function)
        return found

    def derivations(self) -> dict[str, Callable[..., Any]]:
        """The functions that derive variables, from the workflow's `derivations.py`."""
        found: dict[str, Callable[..., Any]] = {}
        document = self._folder.documents.get("context_variables")
        if document is None:
            return found
        for name in _asked(document.value):
            place = (document.file, document.line_of("function", name))
            function = self._function("derivations.py", name, place)
            if function is None:
                continue
            if not getattr(function, "is_derivation", False):
                message = f"Function {name!r} of derivations.py is not registered."
                remedy = "Put `@derivation` above it."
                self.problems.append(Diagnostic(*place, "W044", message, remedy))
            found[name] = function
        return found

    def _function(self, file: str, name: str, place: tuple[str, int]) -> Callable[..., Any] | None:
        try:
            return self.modules.function(file, name)
        except DefinitionError as error:
            named = [where_named(problem, *place) for problem in error.diagnostics]
            self.problems += [problem for problem in named if problem not in self.problems]
            return None

    def _callee(
        self, function: Callable[..., Any], name: str, description: str, place: tuple[str, int]
    ) -> Callee | None:
        try:
            return adapter("functions").FunctionCallee(function, name, description)
        except TypeError as error:
            message = f"Function {name!r} cannot be called with JSON: {error}."
            remedy = "Give its parameters types that JSON can have."
            self.problems.append(Diagnostic(*place, "W049", message, remedy))
            return None

    def _unasked(self, callee: Callee, name: str, place: tuple[str, int]) -> Callee:
        """Note a hook that wants arguments: nobody gives it any."""
        wanted = ", ".join(callee.schema.parameters.get("required", ()))
        if wanted:
            message = f"Hook {name!r} wants {wanted}; hooks are given the context alone."
            remedy = "Take `context_variables`, or nothing."
            self.problems.append(Diagnostic(*place, "W049", message, remedy))
        return callee


def _asked(value: Json) -> Iterator[str]:
    """The functions that triggers anywhere in a document name."""
    mapping = as_object(value)
    name = (mapping or {}).get("function")
    if mapping is not None and mapping.get("type") == "function" and isinstance(name, str):
        yield name
    for each in (mapping.values() if mapping is not None else as_array(value)) or ():
        yield from _asked(each)


def where_named(problem: Diagnostic, file: str, line: int) -> Diagnostic:
    """A problem with a name of code, at the place that names it; one inside the code stays."""
    inside = problem.file.endswith(".py")
    return problem if inside else replace(problem, file=file, line=line)
