"""Static checks of programs that use AG2's classic group chats."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeGuard

from turnloom.errors import Diagnostic

# The package of AG2's classic API.
PACKAGE = "autogen"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

# Scopes in which names are looked up; names in a class are reached through the class only.
Scope = ast.Module | Function | ast.Lambda | Comprehension


def classic(text: bytes) -> "SourceProgram | None":
    """Parse a program that uses the classic API; None if it does not, or is not Python."""
    if PACKAGE.encode() not in text:
        return None
    try:
        program = SourceProgram(text)
    except (SyntaxError, ValueError, RecursionError):  # reported when it runs
        return None
    return program if program.is_classic else None


class SourceProgram:
    """A parsed source file, with its bindings of names and the parent of each node."""

    def __init__(self, text: bytes) -> None:
        self.tree = ast.parse(text)
        self.nodes = [*ast.walk(self.tree)]
        self._above = {each: node for node in self.nodes for each in ast.iter_child_nodes(node)}
        self._imported = dict(_imports(self.nodes))

    @property
    def is_classic(self) -> bool:
        """Whether it imports anything of the classic API."""
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
        """Its functions, nested ones and methods included."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Its calls."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    def named(self, node: ast.AST | None) -> str:
        """The name in the classic API that an expression refers to, without its module; else
        empty."""
        steps: list[str] = []
        while isinstance(node, ast.Attribute):
            steps.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._imported:
            return ""
        return [*self._imported[node.id].split("."), *reversed(steps)][-1]

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The ancestors of a node, innermost first."""
        while node in self._above:
            node = self._above[node]
            yield node

    def is_method(self, function: Function) -> bool:
        """Whether a function is a method."""
        return isinstance(self._above[function], ast.ClassDef)

    def bound(self, node: ast.Name) -> list["Binding"]:
        """The bindings of a name: all of them in the innermost scope that has any."""
        for scope in (each for each in self.around(node) if isinstance(each, Scope)):
            if found := self._bindings.get((scope, node.id)):
                return found
        return []

    def reached(
        self, node: ast.AST, stands: Callable[[ast.Name], Iterable["Binding"]] | None = None
    ) -> Iterator["Binding"]:
        """The bindings of the names in an expression, and transitively of those in their values,
        each once; `stands` replaces the lookup of a name."""
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
    """A binding of a name to a value; None if the value is not known."""

    __slots__ = ("name", "place", "value")

    def __init__(self, name: str, place: ast.AST, value: ast.expr | None) -> None:
        self.name = name
        self.place = place
        self.value = value


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """The names imported from the classic API, and what they refer to."""
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
    """The names that a statement or expression binds."""
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


# Functions of the classic API, and methods of its agents, that start a chat.
GROUP_CHATS = frozenset(
    f"{prefix}{name}"
    for name in ("initiate_group_chat", "run_group_chat", "run_group_chat_iter")
    for prefix in ("", "a_")
)
CHATS = frozenset({"initiate_chat", "a_initiate_chat", "initiate_chats", "a_initiate_chats"})

# An agent that is made of agents.
MANAGER = "GroupChatManager"

Loop = ast.For | ast.AsyncFor | ast.While | Comprehension
Repeated = Function | ast.Lambda | Loop


class Reuse(NamedTuple):
    """A chat that is started at a line with the same agents, by the names that hold them, in each
    repetition of a function or loop."""

    line: int
    repeated: Repeated
    agents: tuple[str, ...]


def reuses_of(program: SourceProgram) -> Iterator[Reuse]:
    """The chats that a program starts with agents of an earlier chat."""
    makers = _makers(program)
    for call in program.calls:
        is_group = program.named(call.func) in GROUP_CHATS
        if not is_group and not _starts_chat(call):
            continue
        for repeated in _repeated(program, call, with_loops=is_group):
            agents = sorted({each.name for each in _made_before(program, call, repeated, makers)})
            if agents:
                yield Reuse(call.lineno, repeated, tuple(agents))
                break


def _starts_chat(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in CHATS


def _makers(program: SourceProgram) -> frozenset[str]:
    """The names of the program's own classes of agents."""
    found: set[str] = set()
    for node in program.nodes:
        if isinstance(node, ast.ClassDef) and any(
            _is_maker(program, base, found) for base in node.bases
        ):
            found.add(node.name)
    return frozenset(found)


def _is_maker(program: SourceProgram, node: ast.expr, own: Iterable[str]) -> bool:
    """Whether calling it makes an agent."""
    if isinstance(node, ast.Name) and node.id in own:
        return True
    name = program.named(node)
    return name.endswith("Agent") or name == MANAGER


def _repeated(program: SourceProgram, call: ast.Call, *, with_loops: bool) -> Iterator[Repeated]:
    """The functions and loops around a call that may run more than once, innermost first.

    Chats of two agents clear their history when they start one after the other, so loops are safe
    for them.
    """
    inner: ast.AST = call
    for node in program.around(call):
        if isinstance(node, Function):
            if not _happens_once(program, node):
                yield node
        elif _repeats(node, inner) and (with_loops or isinstance(node, ast.Lambda)):
            yield node
        inner = node


def _repeats(node: ast.AST, inner: ast.AST) -> TypeGuard[Loop | ast.Lambda]:
    """Whether a part of a loop runs in each round: its iterable is evaluated once."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return inner is not node.iter
    if isinstance(node, Comprehension):
        return not isinstance(inner, ast.comprehension)
    return isinstance(node, ast.While | ast.Lambda)


def _happens_once(program: SourceProgram, function: Function) -> bool:
    """Whether a function is certainly called once: from one place that runs once."""
    seen: list[ast.AST] = []
    here: ast.AST = function
    while isinstance(here, Function):
        seen.append(here)
        call = _only_call(program, here)
        if call is None or here.decorator_list:
            return False
        around = [*program.around(call)]
        if any(_repeats(each, inner) for each, inner in zip(around, (call, *around), strict=False)):
            return False
        here = next((each for each in around if isinstance(each, Function)), program.tree)
        if here in seen:
            return False
    return True


def _only_call(program: SourceProgram, function: Function) -> ast.Call | None:
    """The call of a function, if that is its only use."""
    kind = ast.Attribute if program.is_method(function) else ast.Name
    uses = [
        node for node in program.nodes if isinstance(node, kind) and _name(node) == function.name
    ]
    calls = [call for call in program.calls if call.func in uses]
    return calls[0] if len(uses) == len(calls) == 1 else None


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _made_before(
    program: SourceProgram, call: ast.Call, repeated: Repeated, makers: frozenset[str]
) -> Iterator[Binding]:
    """The agents that a chat is started with and that were made outside the repetition."""
    for binding in program.reached(call, lambda name: _in_force(program, name, repeated)):
        is_inside = repeated in program.around(binding.place)
        if binding.value and not is_inside and _makes(program, binding.value, makers):
            yield binding


def _in_force(program: SourceProgram, name: ast.Name, repeated: Repeated) -> list[Binding]:
    """The bindings of a name: those inside the repetition, if there are any."""
    found = program.bound(name)
    inside = [each for each in found if repeated in program.around(each.place)]
    return inside or found


def _makes(program: SourceProgram, value: ast.expr, makers: frozenset[str]) -> bool:
    """Whether an expression makes an agent, or a collection of agents."""
    match value:
        case ast.Call(func=made):
            return _is_maker(program, made, makers)
        case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Dict(values=held):
            return any(_makes(program, each, makers) for each in held)
        case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each) | ast.DictComp(value=each):
            return _makes(program, each, makers)
        case _:
            return False


# The parameter that gets the variables, in AG2 and here.
CONTEXT = "context_variables"

# Methods that change variables in place.
CHANGING = frozenset({"set", "update", "remove", "clear", "pop", "setdefault"})


class VariableWrites(NamedTuple):
    """How a function sets variables: the line of its first write in place, and of the first result
    that contains them."""

    in_place: int | None
    given: int | None


def writing(program: SourceProgram, function: Function) -> VariableWrites | None:
    """How a function sets the variables that it gets; None if it gets none, or if that cannot be
    determined."""
    name = _parameter(program, function)
    nodes = [node for each in function.body for node in ast.walk(each)]
    if name is None or any(_is_taken_along(node, name) for node in nodes):
        return None
    parts = [node for node in nodes if isinstance(node, ast.expr)]
    written = [part.lineno for part in parts if _writes(part, name)]
    given = [part.lineno for part in parts if _gives(program, part)]
    return VariableWrites(min(written, default=None), min(given, default=None))


def _parameter(program: SourceProgram, function: Function) -> str | None:
    declared = function.args
    for each in (*declared.posonlyargs, *declared.args, *declared.kwonlyargs):
        hint = ast.walk(each.annotation) if each.annotation else ()
        if each.arg == CONTEXT or "ContextVariables" in map(program.named, hint):
            return each.arg
    return None


def _is_taken_along(node: ast.AST, name: str) -> bool:
    """Whether the variables escape: the name is bound again, or the result of a call with them is
    used."""
    match node:
        case ast.Name(id=id, ctx=ast.Store()):
            return id == name
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.Return(value=value):
            calls = (each for each in ast.walk(value or node) if isinstance(each, ast.Call))
            return any(_is_plain(each, name) for call in calls for each in call.args)
        case _:
            return False


def _is_plain(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _writes(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr=attr)):
            return attr in CHANGING and _holds(held, name)
        case ast.Subscript(value=held, ctx=ast.Store() | ast.Del()):
            return _holds(held, name)
        case _:
            return False


def _holds(node: ast.expr, name: str) -> bool:
    """Whether an expression is the variables: by name, or as their `data`."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return _is_plain(node, name)


def _gives(program: SourceProgram, node: ast.expr) -> bool:
    """Whether an expression makes a result with variables."""
    return (
        isinstance(node, ast.Call)
        and program.named(node.func) == "ReplyResult"
        and any(each.arg in (CONTEXT, None) for each in node.keywords)
    )


# ------------------------------------------------------------------ tools

# Methods of agents that register a function as a tool, as a decorator or called with it.
REGISTERING = frozenset({"register_for_llm", "register_for_execution"})

# Calls that take tools, and the arguments for them.
TAKING = {"register_function": ("f",), "Tool": ("func_or_tool",)}


def tools_of(program: SourceProgram) -> Iterator[Function]:
    """The functions that the program registers as tools of chats."""
    handed = {name for call in program.calls for name in _handed(program, call)}
    for function in program.functions:
        if function.name in handed or any(
            _registers(program, each) for each in function.decorator_list
        ):
            yield function


def _registers(program: SourceProgram, node: ast.expr) -> bool:
    """Whether the value of an expression registers a function as a tool."""
    made = node.func if isinstance(node, ast.Call) else node
    is_method = isinstance(made, ast.Attribute) and made.attr in REGISTERING
    return is_method or program.named(made) == "tool"


def _handed(program: SourceProgram, call: ast.Call) -> Iterator[str]:
    """The names of functions that a call takes as tools."""
    given = {each.arg: each.value for each in call.keywords if each.arg}
    wanted = TAKING.get(program.named(call.func), ())
    if wanted or _registers(program, call.func):
        yield from (each.id for each in call.args[:1] if isinstance(each, ast.Name))
    elif program.named(call.func):
        wanted = ("functions",)
    for value in (given[key] for key in wanted if key in given):
        held = (each.value for each in program.reached(value) if each.value)
        for node in (value, *held):
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def check_chats(program: SourceProgram, file: str) -> Iterator[Diagnostic]:
    """Warnings for the chats of a program: tools that lose their writes, and agents that are reused
    between runs."""
    for tool in tools_of(program):
        found = writing(program, tool)
        if found is not None and found.in_place is not None and found.given is None:
            message = f"Variables set by tool {tool.name!r} are lost: it gets a copy."
            remedy = "Return them: `ReplyResult(message=…, context_variables=…)`."
            yield _warning(file, found.in_place, "W071", message, remedy=remedy)
    for reuse in reuses_of(program):
        names = ", ".join(map(repr, reuse.agents))
        what = _repetition(reuse.repeated)
        message = f"Each {what} starts a chat with the same agents: {names}."
        remedy = "Create agents for each run: they keep the variables and messages of the last one."
        yield _warning(file, reuse.line, "W072", message, remedy=remedy)


def check_tool(program: SourceProgram, file: str, name: str) -> Iterator[Diagnostic]:
    """Warnings for a tool of a folder whose writes are kept only here, or only by AG2."""
    for function in program.functions:
        found = writing(program, function) if function.name == name else None
        if found is None or (found.in_place is None) == (found.given is None):
            continue
        if found.in_place is not None:
            message = f"Variables set by tool {name!r} are kept here, but lost in an AG2 chat."
            remedy = "If an AG2 chat uses it, also return `ReplyResult(…, context_variables=…)`."
            yield _warning(file, found.in_place, "W071", message, remedy=remedy)
        else:
            message = f"Variables returned by tool {name!r} are kept by AG2, but lost here."
            remedy = "Assign them: `context_variables[name] = value`."
            yield _warning(file, found.given or 1, "W071", message, remedy=remedy)


def _repetition(repeated: Repeated) -> str:
    match repeated:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return f"call of {name!r}"
        case ast.Lambda():
            return "call of a function"
        case _:
            return "iteration of a loop"


def _warning(file: str, line: int, code: str, message: str, remedy: str) -> Diagnostic:
    return Diagnostic(file, line, code, message, remedy=remedy, severity="warning")


__all__ = ["check_chats", "check_tool", "classic"]
