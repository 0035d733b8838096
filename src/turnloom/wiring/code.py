"""Functions of the code in a workflow folder."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from turnloom.agents.spec import Callee, Component, ComponentChoice, Tool
from turnloom.agents.spec.arguments import as_component
from turnloom.conversation.logic.chats import SourceProgram, check_tool, classic
from turnloom.conversation.logic.rosters import (
    NamedFunction,
    declared_components,
    declared_hooks,
    declared_message_hooks,
    declared_tools,
    unread_functions,
)
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.guards.spec import Category, Guards
from turnloom.kernel.contained import error_name
from turnloom.kernel.documents import Folder
from turnloom.kernel.values import Json, as_array, as_object, error_text
from turnloom.variables.logic.checking import file_variables
from turnloom.variables.logic.types import misfit
from turnloom.wiring.adapters import adapter

log = logging.getLogger("turnloom.check")

# Code of the diagnostic for a missing code file.
NO_CODE_FILE = "W040"

# Code of the diagnostic for a code file outside of the folder.
NO_INNER_FILE = "W041"

# Code of the diagnostic for a data file that cannot be read.
NO_DATA_FILE = "W069"

# Code of the diagnostic for a missing function.
NO_FUNCTION = "W043"

# File with the providers and collections of a workflow.
PROVIDERS = "providers.py"

# File and line of a declaration.
Place = tuple[str, int]


class Code:
    """Functions that a workflow refers to. Those that cannot be loaded are reported in `problems`;
    `stubs` are derivations that a migration adds if they are missing."""

    def __init__(
        self,
        modules: Any,
        folder: Folder,
        broken: frozenset[str],
        stubs: frozenset[str] = frozenset(),
    ) -> None:
        self.modules = modules
        self.problems: list[Diagnostic] = []
        self._folder = folder
        self._broken = broken
        self._stubs = stubs
        self._models: Any = {}
        self._programs: dict[str, SourceProgram | None] = {}

    def tools(self) -> dict[str, Callee]:
        """Tools by name."""
        found: dict[str, Callee] = {}
        for place, tool in declared_tools(self._folder, self._broken):
            function = self._declared(tool.file, tool.function, place)
            callee = function and self._callee(function, tool.title, tool.description, place)
            if callee is not None:
                found[tool.title] = callee
                self._examine(tool)
        return found

    def _examine(self, tool: Tool) -> None:
        """Report a tool that writes variables in a way that only Turnloom or only AG2 keeps."""
        file, text = self.modules.text(tool.file)
        if file not in self._programs:
            self._programs[file] = classic(text.encode())
        if program := self._programs[file]:
            self._note(*check_tool(program, file, tool.function))

    def hooks(self) -> dict[int, Callee]:
        """Hooks by position."""
        found: dict[int, Callee] = {}
        for number, (place, hook) in enumerate(declared_hooks(self._folder, self._broken)):
            function = self._declared(hook.file, hook.function, place)
            callee = function and self._callee(function, hook.title, hook.description, place)
            if callee is not None:
                found[number] = self._unasked(callee, hook.title, place)
        for each in unread_functions(self._folder, self._broken):
            self._declared(each.file, each.function, each.place)  # reports its missing code
        return found

    def message_hooks(self) -> dict[int, Callable[..., Awaitable[Any]]]:
        """Message hooks by position."""
        found: dict[int, Callable[..., Awaitable[Any]]] = {}
        declared = declared_message_hooks(self._folder, self._broken)
        for number, (place, hook) in enumerate(declared):
            function = self._declared(hook.filename, hook.function, place)
            if function is not None:
                found[number] = adapter("functions").as_async(function)
        return found

    def components(self) -> dict[str, tuple[Component, ...]]:
        """Components of each agent; those that cannot be created are reported."""
        found: dict[str, tuple[Component, ...]] = {}
        for agent, declared in declared_components(self._folder, self._broken).items():
            made: list[Component] = []
            for place, choice in declared:
                component = self._component(choice, place)
                if any(component is each for each in made):
                    message = (
                        f"{choice.function!r} returns a component that agent {agent!r} already has."
                    )
                    self.note(place, "W073", message, "Remove it, or return a new component.")
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
        except Exception as error:  # noqa: BLE001 - reported as a diagnostic
            message = f"Function {choice.function!r} of {choice.file} creates no component: "
            remedy = "Take no arguments, and return an object with `around_turn` or `around_call`."
            self.note(place, "W073", f"{message}{error_name(error)}: {error_text(error)}", remedy)
            return None

    def derivations(self) -> dict[str, Callable[..., Any]]:
        """Functions in `derivations.py` that derive variables."""
        found: dict[str, Callable[..., Any]] = {}
        document = self._folder.documents.get("context_variables")
        if document is None:
            return found
        for name in _asked(document.value):
            place = (document.file, document.line_of(name, "function"))
            if name in self._stubs and name not in (self.members("derivations.py") or ()):
                continue
            function = self.function("derivations.py", name, place)
            if function is None:
                continue
            if not getattr(function, "is_derivation", False):
                message = f"Function {name!r} of derivations.py is not a derivation."
                remedy = "Decorate it with `@derivation`."
                self.note(place, "W044", message, remedy)
            found[name] = function
        return found

    def data(self) -> dict[str, Json]:
        """The contents of the files that variables are read from, by variable."""
        found: dict[str, Json] = {}
        document = self._folder.documents.get("context_variables")
        if document is None or "context_variables" in self._broken:
            return found
        for path, definition, source in file_variables(document):
            place = (document.file, document.place((*path, "source", "path")).line)
            try:
                value = adapter("files").read_data(self._folder.root, source.path, source.syntax)
            except ValueError as error:
                self.note(place, NO_DATA_FILE, str(error))
                continue
            if problem := misfit(definition, value):
                remedy = f"Change the type, or the content of {source.path!r}."
                self.note(place, "W024", f"{problem}.", remedy)
            found[definition.name] = value
        return found

    def guards(self, declared: Guards) -> Guards:
        """Replace function names in guards by the functions in `guards.py`."""
        selection = declared.selection
        if selection is None:
            return declared
        function = self._guard("function", selection.about.function)
        category = selection.about if function is None else Category(function=function)
        score = self._guard("score", selection.score)
        bound = selection.model_copy(update={"category": category, "score": score})
        return declared.model_copy(update={"selection": bound})

    def _guard(self, key: str, name: Any) -> Callable[..., Any] | None:
        if not isinstance(name, str):
            return None
        document = self._folder.documents["orchestrator"]
        return self.function("guards.py", name, (document.file, document.line_of(name, key)))

    @property
    def is_sound(self) -> bool:
        """Whether every function was loaded."""
        return all(problem.severity != "error" for problem in self.problems)

    def note(
        self, place: Place, code: str, message: str, remedy: str = "", severity: str = "error"
    ) -> None:
        """Report a problem once."""
        self._note(Diagnostic(*place, code, message, remedy, severity))

    def _note(self, *problems: Diagnostic) -> None:
        self.problems += [each for each in problems if each not in self.problems]

    def file(self, path: str) -> str:
        """Path of a code file as shown in diagnostics."""
        root = FilePath(self._folder.root).absolute()
        return f"{self._folder.name}/{FilePath(path).relative_to(root).as_posix()}"

    def members(self, file: str) -> Mapping[str, Any] | None:
        """Names that a file defines: empty if the file is missing, None if it does not load."""
        try:
            return self.modules.members(file)
        except DefinitionError as error:
            if [problem.code for problem in error.diagnostics] == [NO_CODE_FILE]:
                return {}
            self._note(*error.diagnostics)
            return None

    def function(self, file: str, name: str, place: Place) -> Callable[..., Any] | None:
        """Load a function. If that fails, report it at `place` and return None."""
        try:
            return self.modules.function(file, name)
        except DefinitionError as error:
            self._note(*(_moved(problem, place) for problem in error.diagnostics))
            return None

    def _declared(self, file: str, name: str, place: Place) -> Callable[..., Any] | None:
        """Load the function of a declaration. If that fails, report it at the line that names
        it, or its file."""
        try:
            return self.modules.function(file, name)
        except DefinitionError as error:
            self._note(*self.named(error, NamedFunction(file, name, place)))
            return None

    def named(self, error: DefinitionError, called: NamedFunction) -> list[Diagnostic]:
        """Problems of a function, located at the lines of the declaration that name it, or its
        file."""
        return [_moved(each, self._naming(each.code, called)) for each in error.diagnostics]

    def _naming(self, code: str, called: NamedFunction) -> Place:
        """The line of a declaration that names what is missing."""
        file, line = called.place
        said, keys = called.function, ("function",)
        if code in (NO_CODE_FILE, NO_INNER_FILE):
            said, keys = called.file, ("file", "filename")
        elif code != NO_FUNCTION:
            return called.place
        documents = self._folder.documents.values()
        found = (each.line_of(said, *keys, start=line) for each in documents if each.file == file)
        return file, next(found, line)

    def _callee(
        self, function: Callable[..., Any], name: str, description: str, place: Place
    ) -> Callee | None:
        try:
            make = adapter("functions").FunctionCallee
            return make(function, name, description, self._models)
        except TypeError as error:
            message = f"Function {name!r} cannot be called with JSON: {error}."
            remedy = "Use parameter types that JSON can represent."
            self.note(place, "W049", message, remedy)
            return None

    def _unasked(self, callee: Callee, name: str, place: Place) -> Callee:
        """Report a hook with required parameters: hooks are called without arguments."""
        wanted = ", ".join(callee.schema.parameters.get("required", ()))
        if wanted:
            message = f"Hook {name!r} requires {wanted}, but hooks receive only the context."
            remedy = "Take `context_variables` or no parameters."
            self.note(place, "W049", message, remedy)
        return callee


def _asked(value: Json) -> Iterator[str]:
    """Names of functions in the triggers of a document."""
    mapping = as_object(value)
    name = (mapping or {}).get("function")
    if mapping is not None and mapping.get("type") == "function" and isinstance(name, str):
        yield name
    for each in (mapping.values() if mapping is not None else as_array(value)) or ():
        yield from _asked(each)


def _moved(problem: Diagnostic, place: Place) -> Diagnostic:
    """A problem at the line that names the missing file or function. Problems inside code keep
    their place."""
    if problem.code != NO_FUNCTION and problem.file.endswith(".py"):
        return problem
    return replace(problem, file=place[0], line=place[1])


def callee_of(function: Any, name: str) -> Callee:
    """Wrap a function of a program, so that turns can call it.

    Raises:
        UsageError: a parameter has a type that JSON cannot represent.
    """
    try:
        return adapter("functions").FunctionCallee(function, name)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"Function {name!r} cannot be called with JSON: {error_text(error)}."
        ) from error


def warn_of(name: str, warnings: Sequence[Diagnostic]) -> None:
    """Log the warnings of a workflow that a program declares."""
    if warnings:
        lines = "\n".join(f"  {problem}" for problem in warnings)
        log.warning("Workflow %r is valid, with warnings:\n%s", name, lines)
