"""Load code files that build workflows as an import does, without running their main part."""

import builtins
import itertools
import os
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence, Set
from contextvars import ContextVar
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import Lock, RLock
from types import ModuleType
from typing import Any, NoReturn

from turnloom.adapters.files.folders import code_files, inside, read_text
from turnloom.adapters.files.mozaiks import WORKFLOWS, PackageImport, package_imports
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.kernel.values import nearest

_loads = itertools.count(1)
_NAME_IT = "Name a file in the folder or in its 'tools'."
_COPY_IT = "Copy the file into the folder."
_INSTALL_IT = "Install the missing module, or add its file to the folder or to its 'tools'."
_FIX_IT = "Fix the error. Run the file with `python` to see it."
# `os._exit` ends a process at once, without an exception.
_EXIT = b"_exit"
_INIT = "__init__.py"


class Modules:
    """One load of a folder's code. Each file runs once, and shares nothing with other loads.

    Files import each other, as `from .helpers import x` or `from helpers import x`, and packages
    of the folder. The search order is the standard library, the file's own directory, the root, and
    `tools`.

    `loading` is called with each file before its code runs, and may refuse it by a
    `DefinitionError`. Keep this object as long as its functions are in use.
    """

    def __init__(
        self, root: str | os.PathLike[str], loading: Callable[[str], None] | None = None
    ) -> None:
        self._root = os.path.abspath(root)
        self._loading = loading
        self._name = os.path.basename(self._root)
        self._loaded: dict[str, ModuleType] = {}
        # Paths and texts by file: one load sees one state of the folder.
        self._found: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._lock = RLock()

    def function(self, file: str, name: str) -> Callable[..., Any]:
        """The function with this name in a code file, which is searched in the root, then in
        `tools`.

        Raises:
            DefinitionError: the file or the function does not exist, or the file does not load.
        """
        members = self.members(file)
        if callable(member := members.get(name)):
            return member
        return self._refuse_function(self._find(file), name, members)

    def members(self, file: str) -> dict[str, Any]:
        """The definitions of a code file by name. The file is searched in the root, then in
        `tools`.

        Raises:
            DefinitionError: the file does not exist, or does not load.
        """
        found = self._find(file)
        self._announce(found)
        return vars(self._module(found))

    def _module(self, file: str) -> ModuleType:
        with self._lock:
            return self._loaded[file] if file in self._loaded else self._load(file)

    def _announce(self, file: str) -> None:
        """Report the file whose code runs next."""
        if self._loading:
            self._loading(f"{self._name}/{file}")

    def text(self, file: str) -> tuple[str, str]:
        """The label of a code file in diagnostics, and its text.

        Raises:
            DefinitionError: the file does not exist, or cannot be read.
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
        """The path of a code file relative to the root."""
        if file not in self._found:
            self._found[file] = self._look(file)
        return self._found[file]

    def _look(self, file: str) -> str:
        # Windows path rules cover both separators, drives and shares. They are refused on every
        # system.
        steps = PureWindowsPath(file)
        if steps.anchor or ".." in steps.parts or "\0" in file:
            self._refuse("W041", f"{file!r} is not a path inside the workflow folder.", _NAME_IT)
        relative, known = str(PurePosixPath(file)), code_files(self._root)
        for candidate in (relative, f"tools/{relative}"):
            if not inside(self._root, os.path.join(self._root, candidate)):
                self._refuse(
                    "W041", f"{candidate!r} is a link that leaves the workflow folder.", _COPY_IT
                )
            if candidate in known:
                return candidate
        found = ", ".join(known) or "none"
        message = f"Code file {file!r} is not in the folder or its 'tools'. Found: {found}."
        meant = nearest(file, known) or nearest(f"tools/{file}", known)
        remedy = f"Did you mean {meant!r}?" if meant else "Add the file, or fix its name."
        self._refuse("W040", message, remedy)

    def _load(self, file: str) -> ModuleType:
        path = os.path.join(self._root, file)
        _, source = self.text(file)
        self._refuse_packages(file, source)
        self._announce(file)
        # Dataclasses, pydantic and `get_type_hints` look up a class's module in `sys.modules`, some
        # of them only on first use. So it stays there as long as this load exists. Each load uses
        # new names, so loads never share modules.
        module = ModuleType(f"turnloom_code_{next(_loads)}_{PurePosixPath(file).stem}")
        module.__file__, module.__package__ = path, ""
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _importer(self, file)}
        self._loaded[file] = module  # before it runs: files may import each other
        sys.modules[module.__name__] = module
        weakref.finalize(self, sys.modules.pop, module.__name__, None).atexit = False
        try:
            # Compiled here because cached bytecode may be older than the file.
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
        except (Exception, SystemExit) as error:
            sys.modules.pop(module.__name__, None)
            del self._loaded[file], self._texts[file]  # allows a retry after a fix
            if isinstance(error, DefinitionError):
                raise  # from a file that it imports
            raise DefinitionError(self._name, [self._import_problem(file, path, error)]) from error
        return module

    def import_from(
        self, file: str, name: str, members: Sequence[str], level: int
    ) -> ModuleType | None:
        """The module that an import finds in the folder; None if it refers to an installed one.

        Raises:
            DefinitionError: the imported file does not load.
            ImportError: a relative import finds no file.
        """
        rest = "" if level else self._inside(name)
        if not level and not rest and name.partition(".")[0] in sys.stdlib_module_names:
            return None
        known = set(code_files(self._root)) - {file}
        for base in [PurePosixPath()] if rest else _bases(file, level):
            module = self._resolve(base, rest or name, members, known)
            if module is not None:
                self._announce(file)
                return module if members or "." not in name else _package(name, module)
        if level:
            raise ImportError(f"No file {name or ', '.join(members)!r} in the folder")
        return None

    def _inside(self, name: str) -> str:
        """The name of a file of this folder, without the path by which MozaiksAI imports it; empty
        if it is another one."""
        path = f"{WORKFLOWS}.{self._name}."
        return name.removeprefix(path) if name.startswith(path) else ""

    def _resolve(
        self, base: PurePosixPath, name: str, members: Sequence[str], known: Set[str]
    ) -> ModuleType | None:
        """The module with a name in a directory: a file, or a package with these members."""
        place = base.joinpath(*name.split(".")) if name else base
        parts = {each: path for each in members if (path := f"{place / each}.py") in known}
        if name and f"{place}.py" in known:
            self._run_packages(base, place.parent, known)
            return self._module(f"{place}.py")
        if parts and len(parts) == len(members):
            self._run_packages(base, place, known)
            return _namespace(name, {key: self._module(each) for key, each in parts.items()})
        if (package := str(place / _INIT)) not in known:
            return None
        self._run_packages(base, place, known)
        module = self._module(package)
        absent = {key: each for key, each in parts.items() if not hasattr(module, key)}
        vars(module).update({key: self._module(each) for key, each in absent.items()})
        return module

    def _run_packages(self, base: PurePosixPath, place: PurePosixPath, known: Set[str]) -> None:
        """Run the packages on the way from one directory to another, as an import does."""
        for above in reversed([place, *place.parents]):
            package = str(above / _INIT)
            if above != base and above.is_relative_to(base) and package in known:
                self._module(package)

    def _refuse_packages(self, file: str, source: str) -> None:
        """Refuse a file that imports packages of MozaiksAI: one problem with all of them."""
        files = [PurePosixPath(each).with_suffix("") for each in code_files(self._root)]
        known = {part for each in files for part in (each.parts[0], each.parts[:2][-1])}
        own = {".".join(each.parts).removesuffix(f".{_INIT[:-3]}") for each in files}
        found = [
            each
            for each in package_imports(source)
            if each.module.partition(".")[0] not in known and not own & {*self._named(each)}
        ]
        if found:
            names = ", ".join(dict.fromkeys(f"{each.module!r}" for each in found))
            message = f"The code file imports {names} of MozaiksAI, which is not installed."
            remedy = " ".join(dict.fromkeys(each.remedy for each in found))
            label, line = f"{self._name}/{file}", found[0].line
            problem = Diagnostic(label, line, "W075", message, remedy=remedy)
            raise DefinitionError(self._name, [problem])

    def _named(self, found: PackageImport) -> Iterator[str]:
        """The modules of this folder to which an import may refer."""
        if rest := self._inside(found.module):
            yield from (rest, *(f"{rest}.{name}" for name in found.names))

    def _import_problem(self, file: str, path: str, error: BaseException) -> Diagnostic:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == path]
        if isinstance(error, SyntaxError) and error.filename == path:
            lines.append(error.lineno)
        message = f"The code file does not load: {type(error).__name__}: {error}."
        remedy = _INSTALL_IT if isinstance(error, ImportError) else _FIX_IT
        line = lines[-1] if lines else None
        return Diagnostic(f"{self._name}/{file}", line or 1, "W042", message, remedy=remedy)

    def _refuse_function(self, file: str, name: str, members: dict[str, Any]) -> NoReturn:
        public = {key: value for key, value in members.items() if not key.startswith("_")}
        known = [key for key, value in public.items() if callable(value)]
        message = f"{file!r} has no function {name!r}. Functions: {', '.join(known) or 'none'}."
        if name in members:
            message = f"{name!r} in {file!r} is {type(members[name]).__name__!r}, not a function."
        meant = nearest(name, known)
        remedy = f"Did you mean {meant!r}?" if meant else "Define it there, or fix the name."
        self._refuse("W043", message, remedy, f"/{file}")

    def _refuse(self, code: str, message: str, remedy: str, below: str = "") -> NoReturn:
        problem = Diagnostic(f"{self._name}{below}", 1, code, message, remedy=remedy)
        raise DefinitionError(self._name, [problem])


def _importer(modules: Modules, file: str) -> Callable[..., Any]:
    """The `__import__` of a code file, with a weak reference to the load."""
    load = weakref.ref(modules)

    def import_module(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        owner = load()
        found = owner.import_from(file, name, fromlist or (), level) if owner else None
        return found or builtins.__import__(name, globals, locals, fromlist or (), level)

    return import_module


def _bases(file: str, level: int) -> Iterator[PurePosixPath]:
    """The directories in which an import of a file searches, in order."""
    here = PurePosixPath(file).parent
    if level:
        yield from [here, *here.parents][level - 1 : level]
    else:
        yield from dict.fromkeys([here, PurePosixPath(), PurePosixPath("tools")])


def _package(name: str, module: ModuleType) -> ModuleType:
    """The result of `import a.b`: module `a` with attribute `b`."""
    first, *rest = name.split(".")
    for part in reversed(rest):
        module = _namespace(first, {part: module})
    return module


def _namespace(name: str, members: dict[str, ModuleType]) -> ModuleType:
    found = ModuleType(name)
    vars(found).update(members)
    return found


# The files that are being loaded around this code: by this thread, or by one that it works for.
_around: ContextVar[frozenset[str]] = ContextVar("turnloom-loading", default=frozenset())
# Programs are loaded one after the other: they change what all share, such as `sys.path`.
_turn = Lock()
# Seconds that a program waits for its turn.
PATIENCE = 60.0


def program(file: str, name: str = "") -> dict[str, Any]:
    """The definitions of a code file by name. It can import files from its own directory. `name` is
    its module name, unless that is taken. Another thread that loads a program is waited for.

    Raises:
        DefinitionError: the file does not load, or a workflow in it fails its check.
        UsageError: the file is the running program, loads itself, or waited too long.
    """
    path = os.path.abspath(file)
    around = _around.get()
    if path in around or path == _running():
        raise UsageError(
            f"{path!r} is already running in this process, so it cannot be loaded. Register its "
            "flows before you continue their runs: `app.register_flow(flow)`."
        )
    if not around and not _turn.acquire(timeout=PATIENCE):
        raise UsageError(
            f"{path!r} cannot be loaded: another program has been loading for {PATIENCE:.0f} s. "
            "Let files only build flows when they are imported."
        )
    within = _around.set(around | {path})
    try:
        return _executed(path, name)
    finally:
        _around.reset(within)
        if not around:
            _turn.release()


def _executed(path: str, name: str) -> dict[str, Any]:
    own = f"turnloom_program_{next(_loads)}_{Path(path).stem}"
    module = ModuleType(own if name in ("", *sys.modules) else name)
    module.__file__ = path
    # Pydantic and `get_type_hints` look up a class's module here, sometimes only on first use.
    sys.modules[module.__name__] = module
    sys.path.insert(0, os.path.dirname(path))
    try:
        source = Path(path).read_bytes()
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except DefinitionError:
        raise
    except (Exception, SystemExit) as error:
        raise DefinitionError(Path(path).name, [_problem(path, error)]) from error
    finally:
        sys.path.remove(os.path.dirname(path))
    return vars(module)


def _running() -> str | None:
    """The file of the running program."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(file) if file else None


def source(file: str) -> bytes:
    """The content of a code file; empty if it cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError:
        return b""


def may_exit(path: str) -> bool:
    """Whether code of a folder, or next to a code file, may end its process without an error."""
    root = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    return any(_EXIT in source(os.path.join(root, file)) for file in code_files(root))


def _problem(path: str, error: BaseException) -> Diagnostic:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines.append(error.lineno)
    message = f"The code file does not load: {type(error).__name__}: {error}."
    line = lines[-1] if lines else None
    remedy = _FIX_IT
    return Diagnostic(os.path.basename(path), line or 1, "W042", message, remedy=remedy)
