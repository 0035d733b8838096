"""Programs that use the classic line of AG2, as they read: nothing of them is run."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

# The package of the classic line.
PACKAGE = "autogen"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

# Where names are looked for: what a class has is reached by the class only.
Scope = ast.Module | Function | ast.Lambda | Comprehension


def classic(text: bytes) -> "Program | None":
    """A text as a program that uses the classic line; nothing if it does not, or is no Python."""
    if PACKAGE.encode() not in text:
        return None
    try:
        program = Program(text)
    except (SyntaxError, ValueError, RecursionError):  # told where it is run
        return None
    return program if program.is_classic else None


class Program:
    """A file of code: what its names stand for, and what surrounds what."""

    def __init__(self, text: bytes) -> None:
        self.tree = ast.parse(text)
        self.nodes = [*ast.walk(self.tree)]
        self._above = {each: node for node in self.nodes for each in ast.iter_child_nodes(node)}
        self._imported = dict(_imports(self.nodes))

    @property
    def is_classic(self) -> bool:
        """Whether it imports anything of the classic line."""
        return bool(self._imported)

    @property
    def names_flows(self) -> bool:
        """Whether it may build a flow."""
        return any(
            isinstance(node, ast.alias | ast.Attribute)
            and (node.name if isinstance(node, ast.alias) else node.attr) == "Flow"
            for node in self.nodes
        )

    @cached_property
    def functions(self) -> list[Function]:
        """Its functions, those inside of classes and others too."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Whatever it calls."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    def named(self, node: ast.AST | None) -> str:
        """What of the classic line an expression names, without its module; else nothing."""
        steps: list[str] = []
        while isinstance(node, ast.Attribute):
            steps.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._imported:
            return ""
        return [*self._imported[node.id].split("."), *reversed(steps)][-1]

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What it stands in, from the inside."""
        while node in self._above:
            node = self._above[node]
            yield node

    def is_method(self, function: Function) -> bool:
        """Whether a function is one of a class."""
        return isinstance(self._above[function], ast.ClassDef)

    def bound(self, node: ast.Name) -> list["Binding"]:
        """What a name that is used there stands for: everything that is said of it in the first
        scope that has it."""
        for scope in (each for each in self.around(node) if isinstance(each, Scope)):
            if found := self._bindings.get((scope, node.id)):
                return found
        return []

    def reached(
        self, node: ast.AST, stands: Callable[[ast.Name], Iterable["Binding"]] | None = None
    ) -> Iterator["Binding"]:
        """What the names of an expression stand for, and the names in that, each once; what a name
        stands for may be asked of somebody else."""
        waiting, seen = [node], set[Binding]()
        while waiting:
            for name in (each for each in ast.walk(waiting.pop()) if isinstance(each, ast.Name)):
                for binding in (stands or self.bound)(name):
                    if binding not in seen:
                        seen.add(binding)
                        yield binding
                        waiting += [binding.value] if binding.value else []

    @cached_property
    def _bindings(self) -> dict[tuple[ast.AST, str], list["Binding"]]:
        found: dict[tuple[ast.AST, str], list[Binding]] = {}
        for node in self.nodes:
            for binding in _bindings(node):
                around = self.around(node)
                scope = next(each for each in around if isinstance(each, Scope | ast.ClassDef))
                found.setdefault((scope, binding.name), []).append(binding)
        return found


class Binding:
    """A name that is given a value; one whose value is not told has none."""

    __slots__ = ("name", "place", "value")

    def __init__(self, name: str, place: ast.AST, value: ast.expr | None) -> None:
        self.name = name
        self.place = place
        self.value = value


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """The names that stand for something of the classic line, and for what."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                root = each.name.partition(".")[0]
                if root == PACKAGE:
                    yield (each.asname, each.name) if each.asname else (root, root)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            if node.module.partition(".")[0] == PACKAGE:
                for each in node.names:
                    yield each.asname or each.name, f"{node.module}.{each.name}"


def _bindings(node: ast.AST) -> Iterator[Binding]:
    """The names that a statement or expression gives a value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, node, value)
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield from _targets(target, node, value)
        case (
            ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target)
        ):
            yield from _targets(target, node, None)
        case ast.withitem(optional_vars=ast.expr() as target):
            yield from _targets(target, node, None)
        case ast.arg(arg=name):
            yield Binding(name, node, None)
        case _:
            return


def _targets(target: ast.expr, place: ast.AST, value: ast.expr | None) -> Iterator[Binding]:
    for each in ast.walk(target):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield Binding(each.id, place, value)
