"""The functions that a workflow names, from the code in its folder."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from turnloom.agents.spec import Callee, Component, ComponentChoice, Tool
from turnloom.agents.spec.arguments import as_component
from turnloom.conversation.logic.chats import SourceProgram, check_tool, classic
from turnloom.conversation.logic.rosters import (
    declared_components,
    declared_hooks,
    declared_message_hooks,
    declared_tools,
)
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.guards.spec import Category, Guards
from turnloom.kernel.contained import error_name
from turnloom.kernel.documents import Folder
from turnloom.kernel.values import Json, as_array, as_object, error_text
from turnloom.wiring.adapters import adapter

log = logging.getLogger("turnloom.check")

# The diagnostic of a code file that is not there.
NO_CODE_FILE = "W040"

# The diagnostic of a code file that lacks a function.
NO_FUNCTION = "W043"

# Where a workflow has providers and collections of its own.
PROVIDERS = "providers.py"

# Where a declaration stands: a file, and a line in it.
Place = tuple[str, int]


class Code:
    """The functions that a workflow names, from its code; what cannot be had is a problem."""

    def __init__(self, modules: Any, folder: Folder, broken: frozenset[str]) -> None:
        self.modules = modules
        self.problems: list[Diagnostic] = []
        self._folder = folder
        self._broken = broken
        self._models: Any = {}
        self._programs: dict[str, SourceProgram | None] = {}

    def tools(self) -> dict[str, Callee]:
        """The tools by name."""
        found: dict[str, Callee] = {}
        for place, tool in declared_tools(self._folder, self._broken):
            function = self._declared(tool.file, tool.function, place)
            callee = function and self._callee(function, tool.title, tool.description, place)
            if callee is not None:
                found[tool.title] = callee
                self._examine(tool)
        return found

    def _examine(self, tool: Tool) -> None:
        """Note what a tool does in one world only: in this one, or in that of AG2."""
        file, text = self.modules.text(tool.file)
        if file not in self._programs:
            self._programs[file] = classic(text.encode())
        if program := self._programs[file]:
            self._note(*check_tool(program, file, tool.function))

    def hooks(self) -> dict[int, Callee]:
        """The hooks by their place."""
        found: dict[int, Callee] = {}
        for number, (place, hook) in enumerate(declared_hooks(self._folder, self._broken)):
            function = self._declared(hook.file, hook.function, place)
            callee = function and self._callee(function, hook.title, hook.description, place)
            if callee is not None:
                found[number] = self._unasked(callee, hook.title, place)
        return found

    def message_hooks(self) -> dict[int, Callable[..., Awaitable[Any]]]:
        """The message hooks by their place."""
        found: dict[int, Callable[..., Awaitable[Any]]] = {}
        declared = declared_message_hooks(self._folder, self._broken)
        for number, (place, hook) in enumerate(declared):
            function = self._declared(hook.filename, hook.function, place)
            if function is not None:
                found[number] = adapter("functions").as_async(function)
        return found

    def components(self) -> dict[str, tuple[Component, ...]]:
        """What stands around the turns and calls of each agent, as far as it can be made."""
        found: dict[str, tuple[Component, ...]] = {}
        for agent, declared in declared_components(self._folder, self._broken).items():
            made: list[Component] = []
            for place, choice in declared:
                component = self._component(choice, place)
                if any(component is each for each in made):
                    message = f"{choice.function!r} gives a component that agent {agent!r} has."
                    self.note(place, "W073", message, "Drop it, or let it make another one.")
                elif component is not None:
                    made.append(component)
            found[agent] = tuple(made)
        return found

    def _component(self, choice: ComponentChoice, place: Place) -> Component | None:
        function = self._declared(choice.file, choice.function, place)
        if function is None:
            return None
        try:
            return as_component(function())
        except Exception as error:  # noqa: BLE001 - whatever the function raises is told
            message = f"Function {choice.function!r} of {choice.file} makes no component: "
            remedy = "Let it take nothing, and give an object with `around_turn` or `around_call`."
            self.note(place, "W073", f"{message}{error_name(error)}: {error_text(error)}", remedy)
            return None

    def derivations(self) -> dict[str, Callable[..., Any]]:
        """The functions that derive variables, from the workflow's `derivations.py`."""
        found: dict[str, Callable[..., Any]] = {}
        document = self._folder.documents.get("context_variables")
        if document is None:
            return found
        for name in _asked(document.value):
            place = (document.file, document.line_of("function", name))
            function = self.function("derivations.py", name, place)
            if function is None:
                continue
            if not getattr(function, "is_derivation", False):
                message = f"Function {name!r} of derivations.py is not registered."
                remedy = "Put `@derivation` above it."
                self.note(place, "W044", message, remedy)
            found[name] = function
        return found

    def guards(self, declared: Guards) -> Guards:
        """Guards with the functions that they name, from the workflow's `guards.py`."""
        selection = declared.selection
        if selection is None:
            return declared
        said = self._guard("function", selection.about.function)
        category = selection.about if said is None else Category(function=said)
        score = self._guard("score", selection.score)
        bound = selection.model_copy(update={"category": category, "score": score})
        return declared.model_copy(update={"selection": bound})

    def _guard(self, key: str, name: Any) -> Callable[..., Any] | None:
        if not isinstance(name, str):
            return None
        document = self._folder.documents["orchestrator"]
        return self.function("guards.py", name, (document.file, document.line_of(key, name)))

    @property
    def is_sound(self) -> bool:
        """Whether everything that is named could be had."""
        return all(problem.severity != "error" for problem in self.problems)

    def note(
        self, place: Place, code: str, message: str, remedy: str = "", severity: str = "error"
    ) -> None:
        """Note a problem, once."""
        self._note(Diagnostic(*place, code, message, remedy, severity))

    def _note(self, *problems: Diagnostic) -> None:
        self.problems += [each for each in problems if each not in self.problems]

    def file(self, path: str) -> str:
        """A code file as problems name it."""
        root = FilePath(self._folder.root).absolute()
        return f"{self._folder.name}/{FilePath(path).relative_to(root).as_posix()}"

    def members(self, file: str) -> Mapping[str, Any] | None:
        """What a file defines: nothing where there is no such file, None if it does not load."""
        try:
            return self.modules.members(file)
        except DefinitionError as error:
            if [problem.code for problem in error.diagnostics] == [NO_CODE_FILE]:
                return {}
            self._note(*error.diagnostics)
            return None

    def function(self, file: str, name: str, place: Place) -> Callable[..., Any] | None:
        """A function of a file; nothing, and a problem at the place that names it, if it cannot be
        had."""
        try:
            return self.modules.function(file, name)
        except DefinitionError as error:
            self._note(*(where_named(problem, place, place) for problem in error.diagnostics))
            return None

    def _declared(self, file: str, name: str, place: Place) -> Callable[..., Any] | None:
        """The function of a declaration that begins at a place, as `function` finds it."""
        try:
            return self.modules.function(file, name)
        except DefinitionError as error:
            self._note(*self.named(error, name, place))
            return None

    def named(self, error: DefinitionError, name: str, place: Place) -> list[Diagnostic]:
        """Problems with a function, at the lines of a declaration that name what is missing."""
        file, line = place
        documents = self._folder.documents.values()
        lines = [each.line_of("function", name, line) for each in documents if each.file == file]
        naming = (file, lines[0] if lines else line)
        return [where_named(problem, place, naming) for problem in error.diagnostics]

    def _callee(
        self, function: Callable[..., Any], name: str, description: str, place: Place
    ) -> Callee | None:
        try:
            make = adapter("functions").FunctionCallee
            return make(function, name, description, self._models)
        except TypeError as error:
            message = f"Function {name!r} cannot be called with JSON: {error}."
            remedy = "Give its parameters types that JSON can have."
            self.note(place, "W049", message, remedy)
            return None

    def _unasked(self, callee: Callee, name: str, place: Place) -> Callee:
        """Note a hook that wants arguments: nobody gives it any."""
        wanted = ", ".join(callee.schema.parameters.get("required", ()))
        if wanted:
            message = f"Hook {name!r} wants {wanted}; hooks are given the context alone."
            remedy = "Take `context_variables`, or nothing."
            self.note(place, "W049", message, remedy)
        return callee


def _asked(value: Json) -> Iterator[str]:
    """The functions that triggers anywhere in a document name."""
    mapping = as_object(value)
    name = (mapping or {}).get("function")
    if mapping is not None and mapping.get("type") == "function" and isinstance(name, str):
        yield name
    for each in (mapping.values() if mapping is not None else as_array(value)) or ():
        yield from _asked(each)


def where_named(problem: Diagnostic, place: Place, naming: Place) -> Diagnostic:
    """A problem with a name of code at the place that names it: a file, or a function; one inside
    the code stays."""
    if problem.code == NO_FUNCTION:
        return replace(problem, file=naming[0], line=naming[1])
    if problem.file.endswith(".py"):
        return problem
    return replace(problem, file=place[0], line=place[1])


def callee_of(function: Any, name: str) -> Callee:
    """A function of a program as something that turns call.

    Raises:
        UsageError: it has a parameter that JSON cannot be.
    """
    try:
        return adapter("functions").FunctionCallee(function, name)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name!r} cannot be called: {error_text(error)}.") from error


def warn_of(name: str, warnings: Sequence[Diagnostic]) -> None:
    """Put warnings about what a program declares into its log, as those about folders are."""
    if warnings:
        lines = "\n".join(f"  {problem}" for problem in warnings)
        log.warning("Workflow %r passes its check, with warnings:\n%s", name, lines)
