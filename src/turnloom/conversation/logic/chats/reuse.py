"""Chats that are started again and again with agents that were made once."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from turnloom.conversation.logic.chats.programs import Binding, Comprehension, Function, Program

# What starts a chat: functions of the classic line, and methods of its agents.
GROUP_CHATS = frozenset(
    f"{prefix}{name}"
    for name in ("initiate_group_chat", "run_group_chat", "run_group_chat_iter")
    for prefix in ("", "a_")
)
CHATS = frozenset({"initiate_chat", "a_initiate_chat", "initiate_chats", "a_initiate_chats"})

# What is made of agents and is an agent too.
MANAGER = "GroupChatManager"

Loop = ast.For | ast.AsyncFor | ast.While | Comprehension
Repeated = Function | ast.Lambda | Loop


class Reuse(NamedTuple):
    """A chat that is started at a line, each time that something is repeated, with the same agents:
    the names that hold these."""

    line: int
    repeated: Repeated
    agents: tuple[str, ...]


def reuses_of(program: Program) -> Iterator[Reuse]:
    """The chats that a program starts with agents of an earlier one."""
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


def _makers(program: Program) -> frozenset[str]:
    """The names of the program's own classes of agents."""
    found: set[str] = set()
    for node in program.nodes:
        if isinstance(node, ast.ClassDef) and any(
            _is_maker(program, base, found) for base in node.bases
        ):
            found.add(node.name)
    return frozenset(found)


def _is_maker(program: Program, node: ast.expr, own: Iterable[str]) -> bool:
    """Whether calling it makes an agent."""
    if isinstance(node, ast.Name) and node.id in own:
        return True
    name = program.named(node)
    return name.endswith("Agent") or name == MANAGER


def _repeated(program: Program, call: ast.Call, *, with_loops: bool) -> Iterator[Repeated]:
    """What surrounds a call and may happen more than once, from the inside.

    Chats of two agents forget what was said when they are started one after the other, so that
    loops do them no harm.
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
    """Whether a part of something happens each time: what a loop goes through is there before."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return inner is not node.iter
    if isinstance(node, Comprehension):
        return not isinstance(inner, ast.comprehension)
    return isinstance(node, ast.While | ast.Lambda)


def _happens_once(program: Program, function: Function) -> bool:
    """Whether a function is surely called once: in one place, which is passed once."""
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


def _only_call(program: Program, function: Function) -> ast.Call | None:
    """The call of a function that is used in no other way."""
    kind = ast.Attribute if program.is_method(function) else ast.Name
    uses = [
        node for node in program.nodes if isinstance(node, kind) and _name(node) == function.name
    ]
    calls = [call for call in program.calls if call.func in uses]
    return calls[0] if len(uses) == len(calls) == 1 else None


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _made_before(
    program: Program, call: ast.Call, repeated: Repeated, makers: frozenset[str]
) -> Iterator[Binding]:
    """The agents that a chat is started with and that were made outside of what is repeated."""
    for binding in program.reached(call, lambda name: _in_force(program, name, repeated)):
        is_inside = repeated in program.around(binding.place)
        if binding.value and not is_inside and _makes(program, binding.value, makers):
            yield binding


def _in_force(program: Program, name: ast.Name, repeated: Repeated) -> list[Binding]:
    """What a name stands for: what is said of it inside of what is repeated, if anything is."""
    found = program.bound(name)
    inside = [each for each in found if repeated in program.around(each.place)]
    return inside or found


def _makes(program: Program, value: ast.expr, makers: frozenset[str]) -> bool:
    """Whether an expression is an agent that is made there, or a collection of such."""
    match value:
        case ast.Call(func=made):
            return _is_maker(program, made, makers)
        case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Dict(values=held):
            return any(_makes(program, each, makers) for each in held)
        case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each) | ast.DictComp(value=each):
            return _makes(program, each, makers)
        case _:
            return False
