"""The size budget: limits for files, functions, classes and the tree."""

import sys
from collections.abc import Iterator
from pathlib import Path

from gates.measure import FEW, Module, measure, python_files

FOLDERS = ("src", "tests", "gates", "bench", "examples", "docs", "workflows")

FILE_LINES = 600
FUNCTION_LINES = 80
PARAMETERS = 7
PUBLIC_METHODS = 12
IGNORES_PER_1000_LINES = 1

# Where a program starts, functions may import lazily.
LAZY = ("src/turnloom/__init__.py", "src/turnloom/app/", "src/turnloom/cli/")

# "path" or "path:name" -> the reason for the exemption: generated files, SQL, builders, mappings,
# and test support.
EXEMPT_FILES: dict[str, str] = {}
EXEMPT_CLASSES: dict[str, str] = {
    "src/turnloom/app/run.py:Run": "the handle of a run: one method for each thing done with it",
    "src/turnloom/reaction/spec/builder.py:AgentBuilder": "a builder: one method per declaration",
}
EXEMPT_IMPORTS: dict[str, str] = {
    "bench/engines.py": "the libraries take seconds to import",
    "src/turnloom/adapters/wordllama/embedder.py": "its import changes logging, which is undone",
    "src/turnloom/agents/logic/outputs/schemas.py": "its library imports as slowly as all of ours",
    "src/turnloom/testing/contracts/engines/stage.py": "an app is above this package",
    "tests/engines/test_local_model.py": "the model may not be installed",
}
EXEMPT_MOCKS: dict[str, str] = {
    "tests/conftest.py": "it times each step of the event loop, which offers no hook",
}


def check_module(module: Module) -> Iterator[str]:
    path = module.path.as_posix()
    if module.lines > FILE_LINES and path not in EXEMPT_FILES:
        yield f"{path}:1: file has {module.lines} lines; at most {FILE_LINES}"
    for function in module.functions:
        where = f"{path}:{function.line}: function {function.name!r}"
        if function.lines > FUNCTION_LINES:
            yield f"{where} has {function.lines} lines; at most {FUNCTION_LINES}"
        if function.parameters > PARAMETERS:
            yield f"{where} has {function.parameters} parameters; at most {PARAMETERS}"


def check_habits(module: Module) -> Iterator[str]:
    path = module.path.as_posix()
    for line in module.swallowed:
        yield f"{path}:{line}: exception is swallowed; re-raise it or record it"
    if path not in EXEMPT_MOCKS:
        for line in module.mocks:
            yield f"{path}:{line}: mock; use a fake from turnloom.testing"
    if not path.startswith(LAZY) and path not in EXEMPT_IMPORTS:
        for line in module.nested_imports:
            yield f"{path}:{line}: import inside a function; move it to the top"
    for line in module.ignored_results:
        yield f"{path}:{line}: gathered errors are dropped; check each result"


def check_classes(module: Module) -> Iterator[str]:
    for item in module.classes:
        path = module.path.as_posix()
        if item.public_methods > PUBLIC_METHODS and f"{path}:{item.name}" not in EXEMPT_CLASSES:
            yield (
                f"{path}:{item.line}: class {item.name!r} has {item.public_methods} "
                f"public methods; at most {PUBLIC_METHODS}"
            )


def check_calls(modules: list[Module]) -> Iterator[str]:
    """Find calls of our functions and classes with too many positional arguments."""
    named = [item.name for module in modules for item in module.functions if item.parameters > FEW]
    named += [item.name for module in modules for item in module.classes if item.fields > FEW]
    own = set(named)
    for module in modules:
        for call in module.calls:
            if call.name in own:
                yield (
                    f"{module.path.as_posix()}:{call.line}: {call.name!r} is called with "
                    f"{call.positional} positional arguments; name those after the first {FEW}"
                )


def check_names(modules: list[Module]) -> Iterator[str]:
    """Find public classes that share a name."""
    first: dict[str, str] = {}
    for module in modules:
        for item in module.classes:
            where = f"{module.path.as_posix()}:{item.line}"
            other = first.setdefault(item.name, where)
            if other != where and not item.name.startswith("_"):
                yield f"{where}: class {item.name!r} has the same name as the class at {other}"


def check_ignores(modules: list[Module]) -> Iterator[str]:
    lines = sum(module.lines for module in modules)
    places = [f"{module.path.as_posix()}:{line}" for module in modules for line in module.ignores]
    if len(places) * 1000 > lines * IGNORES_PER_1000_LINES:
        yield (
            f"src: {len(places)} type-ignores in {lines} lines; "
            f"at most {IGNORES_PER_1000_LINES} per 1000: {', '.join(places)}"
        )


def check_exemptions(modules: list[Module]) -> Iterator[str]:
    paths = {module.path.as_posix() for module in modules}
    classes = {
        f"{module.path.as_posix()}:{item.name}" for module in modules for item in module.classes
    }
    for name in [*EXEMPT_FILES, *EXEMPT_CLASSES, *EXEMPT_IMPORTS, *EXEMPT_MOCKS]:
        if name not in paths | classes:
            yield f"gates/size.py: exempts {name!r}, which does not exist; drop the line"


def read(problems: list[str]) -> Iterator[Module]:
    for path in python_files(Path(folder) for folder in FOLDERS):
        try:
            yield measure(path)
        except SyntaxError as error:
            problems.append(f"{path.as_posix()}:{error.lineno}: cannot be read: {error.msg}")


def main() -> int:
    problems: list[str] = []
    modules = list(read(problems))
    ours = [module for module in modules if module.path.parts[0] == "src"]
    problems += [problem for module in modules for problem in check_module(module)]
    problems += [problem for module in modules for problem in check_habits(module)]
    problems += [problem for module in ours for problem in check_classes(module)]
    problems += [*check_calls(ours), *check_names(ours)]
    problems += [*check_ignores(ours), *check_exemptions(modules)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
