"""What is told of code for chats of AG2's classic line."""

import ast
from collections.abc import Iterator

from turnloom.conversation.logic.chats.programs import Program
from turnloom.conversation.logic.chats.reuse import Repeated, reuses_of
from turnloom.conversation.logic.chats.writes import tools_of, writing
from turnloom.errors import Diagnostic


def check_chats(program: Program, file: str) -> Iterator[Diagnostic]:
    """What goes wrong in the chats of a program: tools whose writes are lost, agents that come
    from one run into the next."""
    for tool in tools_of(program):
        found = writing(program, tool)
        if found is not None and found.in_place is not None and found.given is None:
            message = f"What tool {tool.name!r} sets is lost: it gets a copy of the variables."
            remedy = "Give it back: `ReplyResult(message=…, context_variables=…)`."
            yield _warning(file, found.in_place, "W071", message, remedy)
    for reuse in reuses_of(program):
        names = ", ".join(map(repr, reuse.agents))
        what = _told(reuse.repeated)
        message = f"Each {what} starts a chat with agents that were made once: {names}."
        remedy = "Make agents for each run: they keep variables and messages of the one before."
        yield _warning(file, reuse.line, "W072", message, remedy)


def check_tool(program: Program, file: str, name: str) -> Iterator[Diagnostic]:
    """What a tool of a workflow folder does in one of the two worlds only."""
    for function in program.functions:
        found = writing(program, function) if function.name == name else None
        if found is None or (found.in_place is None) == (found.given is None):
            continue
        if found.in_place is not None:
            message = f"What tool {name!r} sets is kept here and lost in a chat of AG2."
            remedy = "If one has it, also return `ReplyResult(…, context_variables=…)`."
            yield _warning(file, found.in_place, "W071", message, remedy)
        else:
            message = f"What tool {name!r} gives back as variables is kept by AG2 and lost here."
            remedy = "Write it: `context_variables[name] = value`."
            yield _warning(file, found.given or 1, "W071", message, remedy)


def _told(repeated: Repeated) -> str:
    match repeated:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return f"call of {name!r}"
        case ast.Lambda():
            return "call of a function"
        case _:
            return "round of a loop"


def _warning(file: str, line: int, code: str, message: str, remedy: str) -> Diagnostic:
    return Diagnostic(file, line, code, message, remedy, "warning")
