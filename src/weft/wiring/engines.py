"""What makes agents answer, as they choose it."""

import inspect
from typing import Any, cast

from weft.agents.spec import Answer, Engine, EngineChoice, Line, Script, ToolCall, Usage
from weft.wiring.adapters import adapter

ENGINES = ("scripted", "functions")


class Unanswered(Exception):
    """An agent that nothing makes answer."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def scripted(choice: EngineChoice | None, script: Script | None) -> Engine | None:
    """The engine that says a script's lines; none without a script that could be read.

    Raises:
        Unanswered: it is chosen with what it does not take.
    """
    if choice is not None and (choice.file or choice.function):
        message = "The scripted engine reads script.yaml; it takes no file or function."
        raise Unanswered(message, "Drop them, or choose the functions engine.")
    if script is None:
        return None
    lines = {agent: [_answer(line) for line in lines] for agent, lines in script.agents.items()}
    return adapter("scripted").ScriptedEngine(lines)


def _answer(line: Line) -> Answer:
    calls = tuple(ToolCall(call.tool, call.arguments) for call in line.calls)
    return Answer(line.text, Usage(), calls, line.output)


def function(choice: EngineChoice | None, modules: Any) -> Engine:
    """The engine that asks a function of the workflow's code.

    Raises:
        Unanswered: it is not said which one.
        DefinitionError: there is no such function.
    """
    if choice is None or not (choice.file and choice.function):
        message = "The functions engine needs `file` and `function`."
        raise Unanswered(message, "Say which function of which file answers.")
    return adapter("functions").FunctionEngine(modules.function(choice.file, choice.function))


def as_engine(given: Any) -> Engine:
    """An engine, or a function that answers as one."""
    if inspect.isroutine(given):
        return adapter("functions").FunctionEngine(given)
    return cast(Engine, given)
