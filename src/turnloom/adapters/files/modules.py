"""Files of code that build workflows: run as a program would import them, without its main part."""

import builtins
import itertools
import os
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import RLock
from types import ModuleType
from typing import Any, NoReturn

from turnloom.adapters.files.folders import code_files, inside, read_text
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.kernel.values import nearest

_loads = itertools.count(1)
_NAME_IT = "Name a file of the folder or of its 'tools'."
_COPY_IT = "Copy the file into the folder."
_INSTALL_IT = "Install what it imports, or add the file to the folder or to its 'tools'."
_CORRECT_IT = "Correct it; `python` shows the same error for the file."


class Modules:
    """One load of a folder's code: each file runs once, and shares nothing with other loads.

    Files import each other, as `from .helpers import x` or `from helpers import x`: from their own
    directory first, then from the root and from `tools`. The standard library comes before them.

    `loading` is called with a file before its code runs, and may refuse it by a `DefinitionError`.
    Keep it as long as its functions are used.
    """

    def __init__(
        self, root: str | os.PathLike[str], loading: Callable[[str], None] | None = None
    ) -> None:
        self._root = os.path.abspath(root)
        self._loading = loading
        self._name = os.path.basename(self._root)
        self._loaded: dict[str, ModuleType] = {}
        # Where files were found, and their texts: one load sees a folder as it stood.
        self._found: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._lock = RLock()

    def function(self, file: str, name: str) -> Callable[..., Any]:
        """The function of that name in a code file, looked for in the root, then in `tools`.

        Raises:
            DefinitionError: There is no such file or function, or the file does not run.
        """
        members = self.members(file)
        if callable(member := members.get(name)):
            return member
        return self._refuse_function(self._find(file), name, members)

    def members(self, file: str) -> dict[str, Any]:
        """What a code file defines, by name; it is looked for in the root, then in `tools`.

        Raises:
            DefinitionError: There is no such file, or it does not run.
        """
        found = self._find(file)
        self._announce(found)
        return vars(self._module(found))

    def _module(self, file: str) -> ModuleType:
        with self._lock:
            return self._loaded[file] if file in self._loaded else self._load(file)

    def _announce(self, file: str) -> None:
        """Say whose code runs from now on."""
        if self._loading:
            self._loading(f"{self._name}/{file}")

    def text(self, file: str) -> tuple[str, str]:
        """A code file as problems name it, and its text.

        Raises:
            DefinitionError: There is no such file, or it cannot be read.
        """
        found = self._find(file)
        label = f"{self._name}/{found}"
        if found not in self._texts:
            text = read_text(self._root, os.path.join(self._root, found), label)
            if isinstance(text, Diagnostic):
                raise DefinitionError(self._name, [text])
            self._texts[found] = text
        return label, self._texts[found]

    def _find(self, file: str) -> str:
        """The path of a code file below the root."""
        if file not in self._found:
            self._found[file] = self._look(file)
        return self._found[file]

    def _look(self, file: str) -> str:
        # The Windows reading knows both separators, drives and shares: refused on every system.
        steps = PureWindowsPath(file)
        if steps.anchor or ".." in steps.parts or "\0" in file:
            self._refuse("W041", f"{file!r} is no path inside the workflow folder.", _NAME_IT)
        relative, known = str(PurePosixPath(file)), code_files(self._root)
        for candidate in (relative, f"tools/{relative}"):
            if not inside(self._root, os.path.join(self._root, candidate)):
                self._refuse(
                    "W041", f"{candidate!r} is a link out of the workflow folder.", _COPY_IT
                )
            if candidate in known:
                return candidate
        found = ", ".join(known) or "none"
        message = f"There is no code file {file!r} in the folder or its 'tools'. Found: {found}."
        meant = nearest(file, known) or nearest(f"tools/{file}", known)
        remedy = f"Did you mean {meant!r}?" if meant else "Add the file, or correct its name."
        self._refuse("W040", message, remedy)

    def _load(self, file: str) -> ModuleType:
        path = os.path.join(self._root, file)
        _, source = self.text(file)
        self._announce(file)
        # Dataclasses, pydantic and `get_type_hints` look a class's module up in `sys.modules`, some
        # only when first used, so it stays there while this load lives. The name is never given
        # again, so no load finds another's module.
        module = ModuleType(f"turnloom_code_{next(_loads)}_{PurePosixPath(file).stem}")
        module.__file__, module.__package__ = path, ""
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _importer(self, file)}
        self._loaded[file] = module  # before it runs: files may import each other
        sys.modules[module.__name__] = module
        weakref.finalize(self, sys.modules.pop, module.__name__, None).atexit = False
        try:
            # Compiled here, not by an importer: cached bytecode may be older than the file.
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
        except (Exception, SystemExit) as error:
            sys.modules.pop(module.__name__, None)
            del self._loaded[file], self._texts[file]  # it may be corrected
            if isinstance(error, DefinitionError):
                raise  # of a file that it imports
            raise DefinitionError(self._name, [self._import_problem(file, path, error)]) from error
        return module

    def imported(
        self, file: str, name: str, members: Sequence[str], level: int
    ) -> ModuleType | None:
        """What a code file imports from the folder; nothing when it means an installed module.

        Raises:
            DefinitionError: The file that it means does not run.
            ImportError: There is no such file, and it can mean no other module.
        """
        if not level and name.partition(".")[0] in sys.stdlib_module_names:
            return None
        known = set(code_files(self._root)) - {file}
        for base in _bases(file, level):
            place = base.joinpath(*name.split(".")) if name else base
            if f"{place}.py" in known:
                module = self._module(f"{place}.py")
                self._announce(file)
                return module if members or "." not in name else _package(name, module)
            parts = {each: f"{place / each}.py" for each in members}
            if parts and all(each in known for each in parts.values()):
                modules = {key: self._module(each) for key, each in parts.items()}
                self._announce(file)
                return _namespace(name, modules)
        if level:
            raise ImportError(f"There is no file {name or ', '.join(members)!r} in the folder")
        return None

    def _import_problem(self, file: str, path: str, error: BaseException) -> Diagnostic:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == path]
        if isinstance(error, SyntaxError) and error.filename == path:
            lines.append(error.lineno)
        message = f"The code file does not load: {type(error).__name__}: {error}."
        remedy = _INSTALL_IT if isinstance(error, ImportError) else _CORRECT_IT
        line = lines[-1] if lines else None
        return Diagnostic(f"{self._name}/{file}", line or 1, "W042", message, remedy=remedy)

    def _refuse_function(self, file: str, name: str, members: dict[str, Any]) -> NoReturn:
        public = {key: value for key, value in members.items() if not key.startswith("_")}
        known = [key for key, value in public.items() if callable(value)]
        message = f"{file!r} has no function {name!r}. Functions: {', '.join(known) or 'none'}."
        if name in members:
            message = f"{name!r} in {file!r} is {type(members[name]).__name__!r}, not a function."
        meant = nearest(name, known)
        remedy = f"Did you mean {meant!r}?" if meant else "Define it there, or correct the name."
        self._refuse("W043", message, remedy, f"/{file}")

    def _refuse(self, code: str, message: str, remedy: str, below: str = "") -> NoReturn:
        problem = Diagnostic(f"{self._name}{below}", 1, code, message, remedy=remedy)
        raise DefinitionError(self._name, [problem])


def _importer(modules: Modules, file: str) -> Callable[..., Any]:
    """The `__import__` of a code file. It does not keep the load alive."""
    load = weakref.ref(modules)

    def importing(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        owner = load()
        found = owner.imported(file, name, fromlist or (), level) if owner else None
        return found or builtins.__import__(name, globals, locals, fromlist or (), level)

    return importing


def _bases(file: str, level: int) -> Iterator[PurePosixPath]:
    """The directories of the folder that an import of a file looks into, in order."""
    here = PurePosixPath(file).parent
    if level:
        yield from [here, *here.parents][level - 1 : level]
    else:
        yield from dict.fromkeys([here, PurePosixPath(), PurePosixPath("tools")])


def _package(name: str, module: ModuleType) -> ModuleType:
    """What `import a.b` gives: `a`, which has `b`."""
    first, *rest = name.split(".")
    for part in reversed(rest):
        module = _namespace(first, {part: module})
    return module


def _namespace(name: str, members: dict[str, ModuleType]) -> ModuleType:
    found = ModuleType(name)
    vars(found).update(members)
    return found


# The files that are being loaded now.
_loading: set[str] = set()


def program(file: str, name: str = "") -> dict[str, Any]:
    """What a file of code defines, by name; it may import what stands beside it. `name` is what it
    is called as a module, unless another one is called so.

    Raises:
        DefinitionError: it does not run, or a workflow in it does not pass its check.
        UsageError: it is the program that runs here, or asks for itself while it is loaded.
    """
    path = os.path.abspath(file)
    if path in _loading or path == _running():
        raise UsageError(
            f"{path!r} is running here, and is not loaded a second time. Let it register its flows "
            "before it continues their runs: `app.register_flow(flow)`."
        )
    own = f"turnloom_program_{next(_loads)}_{Path(path).stem}"
    module = ModuleType(own if name in ("", *sys.modules) else name)
    module.__file__ = path
    # Pydantic and `get_type_hints` look a class's module up there, some only when first used.
    sys.modules[module.__name__] = module
    sys.path.insert(0, os.path.dirname(path))
    _loading.add(path)
    try:
        source = Path(path).read_bytes()
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except DefinitionError:
        raise
    except (Exception, SystemExit) as error:
        raise DefinitionError(Path(path).name, [_problem(path, error)]) from error
    finally:
        _loading.discard(path)
        sys.path.remove(os.path.dirname(path))
    return vars(module)


def _running() -> str | None:
    """The file of the program that runs here."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(file) if file else None


def source(file: str) -> bytes:
    """A file of code as it stands there; empty if there is none that can be read."""
    try:
        return Path(file).read_bytes()
    except OSError:
        return b""


def _problem(path: str, error: BaseException) -> Diagnostic:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines.append(error.lineno)
    message = f"The code file does not load: {type(error).__name__}: {error}."
    line = lines[-1] if lines else None
    remedy = "Correct it; `python` shows the same error for the file."
    return Diagnostic(os.path.basename(path), line or 1, "W042", message, remedy=remedy)
