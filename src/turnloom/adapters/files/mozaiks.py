"""Imports of MozaiksAI's own packages in code files of a workflow, and what to use instead."""

import ast
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import NamedTuple

# The packages of its releases. `core`, `logs` and `workflows` are common names, so that only the
# modules of MozaiksAI count.
_PACKAGES = ("mozaiksai", "mozaiks")
# The directory of workflow folders, by which files of them are imported.
WORKFLOWS = "workflows"
_MODULES: Mapping[str, frozenset[str]] = {
    "core": frozenset(
        "auth core_config data events observability runtime transport usage workflow".split()
    ),
    "logs": frozenset({"logging_config"}),
}

_ASKING = "Ask people with `from turnloom import use_ui_tool`."
_LOGGING = "Log with `logging.getLogger(__name__)`."
_SIBLING = "Copy the file into the folder and import it by its name: `from .{} import …`."
_VALUES = (
    "Read and write values by a parameter `context_variables`; read databases by a `database` "
    "variable or your own client."
)
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


class PackageImport(NamedTuple):
    """An import of a module, its line, and the names that it imports."""

    module: str
    line: int
    names: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """What to use instead."""
        first, *rest = self.module.split(".")
        words = " ".join((self.module, *self.names)).lower()
        if first == WORKFLOWS:
            return _SIBLING.format(rest[-1])
        if "logg" in words:
            return _LOGGING
        return _ASKING if "ui_tool" in words or "uitool" in words else _VALUES


def package_imports(source: str) -> list[PackageImport]:
    """The imports of MozaiksAI's packages in a code file that fail: none if a package is installed,
    or if the code handles the error."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # reported when the file is loaded
        return []
    found = [each for node in _unguarded(tree) for each in _imports(node)]
    return [each for each in found if _is_theirs(each.module) and not _is_installed(each.module)]


def _unguarded(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it that no `try` and no `if TYPE_CHECKING` guards."""
    yield node
    guarded: list[ast.stmt] = []
    if isinstance(node, ast.Try) and any(_catches(each.type) for each in node.handlers):
        guarded = node.body
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        guarded = node.body
    for child in ast.iter_child_nodes(node):
        if child not in guarded:
            yield from _unguarded(child)


def _catches(type: ast.expr | None) -> bool:
    """Whether a handler of exceptions catches a failed import."""
    if type is None:
        return True
    names = type.elts if isinstance(type, ast.Tuple) else [type]
    return any(isinstance(each, ast.Name) and each.id in _CAUGHT for each in names)


def _imports(node: ast.AST) -> Iterator[PackageImport]:
    if isinstance(node, ast.Import):
        yield from (PackageImport(each.name, node.lineno, ()) for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = tuple(each.name for each in node.names)
        yield PackageImport(node.module, node.lineno, names)


def _is_theirs(module: str) -> bool:
    first, *rest = module.split(".")
    if first == WORKFLOWS:
        return len(rest) > 1
    return first in _PACKAGES or bool(rest and rest[0] in _MODULES.get(first, ()))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module.partition(".")[0]) is not None
    except ValueError:  # a module without a spec, such as one made by a test
        return True
