"""Measure Python files: lines, functions, classes, and forbidden habits."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

IGNORE = re.compile(r"#\s*(type:\s*ignore|pyright:(?!\s*(standard|strict)\b))")
MOCK_MODULES = {"mock", "unittest.mock", "pytest_mock"}
BROAD = {"Exception", "BaseException", "CancelledError"}
FEW = 4  # positional arguments that readers can tell apart
SKIPPED_FOLDERS = {".venv", "__pycache__", "node_modules"}

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int
    parameters: int


@dataclass(frozen=True)
class Class:
    name: str
    line: int
    public_methods: int
    fields: int


@dataclass(frozen=True)
class Call:
    """A call with more positional arguments than readers can tell apart."""

    name: str
    line: int
    positional: int


@dataclass
class Module:
    """The measures of one file; lists of ints are line numbers."""

    path: Path
    lines: int
    functions: list[Function] = field(default_factory=list[Function])
    classes: list[Class] = field(default_factory=list[Class])
    calls: list[Call] = field(default_factory=list[Call])
    nested_imports: list[int] = field(default_factory=list[int])
    ignored_results: list[int] = field(default_factory=list[int])
    swallowed: list[int] = field(default_factory=list[int])
    ignores: list[int] = field(default_factory=list[int])
    mocks: list[int] = field(default_factory=list[int])

    @property
    def tests(self) -> int:
        return sum(function.name.startswith("test_") for function in self.functions)


def python_files(roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if not SKIPPED_FOLDERS.intersection(path.relative_to(root).parts):
                yield path


def measure(path: Path) -> Module:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source, filename=str(path))
    module = Module(path, lines=len(source.splitlines()), ignores=find_ignores(source))
    visit(tree, module, inside_function=False)
    return module


def find_ignores(source: str) -> list[int]:
    if not IGNORE.search(source):
        return []  # the usual case: tokenizing takes half of the measuring time
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and IGNORE.search(token.string)
    ]


def visit(node: ast.AST, module: Module, *, inside_function: bool) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            module.functions.append(describe_function(node))
            inside_function = True
        case ast.ClassDef():
            module.classes.append(describe_class(node))
        case _ if inside_function and imports(node):
            module.nested_imports.append(getattr(node, "lineno", 0))
        case _:
            pass
    note_habits(node, module)
    for child in ast.iter_child_nodes(node):
        visit(child, module, inside_function=inside_function)


def note_habits(node: ast.AST, module: Module) -> None:
    line = getattr(node, "lineno", 0)
    match node:
        case ast.Call(args=[_, _, _, _, _, *_] as given) if not any(map(is_spread, given)):
            module.calls.append(Call(name_of(node.func), line, len(node.args)))
        case ast.Expr(value=ast.Await(value=ast.Call() as call)) if gathers_errors(call):
            module.ignored_results.append(line)
        case _:
            pass
    if swallows(node):
        module.swallowed.append(line)
    if mocks(node):
        module.mocks.append(line)


def describe_function(node: AnyFunction) -> Function:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    named = [argument for argument in arguments if argument.arg not in {"self", "cls"}]
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    return Function(node.name, node.lineno, lines, len(named))


def describe_class(node: ast.ClassDef) -> Class:
    fields = sum(isinstance(item, ast.AnnAssign) for item in node.body)
    return Class(node.name, node.lineno, count_public_methods(node), fields)


def count_public_methods(node: ast.ClassDef) -> int:
    """Count the methods for users: no properties, overloads or tests of a contract suite."""
    names = {
        item.name
        for item in node.body
        if isinstance(item, AnyFunction)
        and not item.name.startswith(("_", "test_"))
        and not any("property" in ast.unparse(decorator) for decorator in item.decorator_list)
    }
    return len(names)


def name_of(function: ast.expr) -> str:
    """The last name of a called expression: `add` of `scope.report.add`."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return name_of(value)
        case _:
            return ""


def imports(node: ast.AST) -> bool:
    """True for imports, and for `import_module("…")` of a literal."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Call(func=function, args=[ast.Constant(), *_]):
            return name_of(function) in {"import_module", "__import__"}
        case _:
            return False


def is_spread(argument: ast.expr) -> bool:
    return isinstance(argument, ast.Starred)


def gathers_errors(call: ast.Call) -> bool:
    """True for `gather(…, return_exceptions=True)`."""
    return name_of(call.func) == "gather" and any(
        keyword.arg == "return_exceptions" and ast.unparse(keyword.value) == "True"
        for keyword in call.keywords
    )


def swallows(node: ast.AST) -> bool:
    """True where a broad exception or a cancellation is caught and only passed."""
    match node:
        case ast.ExceptHandler():
            caught = is_broad(node.type) if node.type else True
            return caught and all(is_empty(statement) for statement in node.body)
        case ast.Call(func=ast.Name("suppress") | ast.Attribute(attr="suppress")):
            return any(is_broad(argument) for argument in node.args)
        case _:
            return False


def is_broad(expression: ast.expr) -> bool:
    parts = expression.elts if isinstance(expression, ast.Tuple) else [expression]
    return any(ast.unparse(part).rpartition(".")[2] in BROAD for part in parts)


def is_empty(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def mocks(node: ast.AST) -> bool:
    """True where a test replaces a part of the program instead of passing a fake."""
    match node:
        case ast.Import():
            return any(alias.name in MOCK_MODULES for alias in node.names)
        case ast.ImportFrom():
            from_unittest = node.module == "unittest"
            named_mock = any(alias.name == "mock" for alias in node.names)
            return node.module in MOCK_MODULES or (from_unittest and named_mock)
        case ast.Call(func=ast.Attribute(value=ast.Name("monkeypatch"), attr="setattr")):
            return True
        case ast.arg(arg="mocker"):
            return True
        case _:
            return False
