"""Files of code that build workflows: run as a program would import them, without its main part."""

import itertools
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from turnloom.errors import DefinitionError, Diagnostic, UsageError

_loads = itertools.count(1)

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
    return Diagnostic(os.path.basename(path), line or 1, "W042", message, remedy)
