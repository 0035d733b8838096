"""What a run makes of answers: those of engines, and those of people."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec
from pydantic import BaseModel

from turnloom.agents.events import AgentOutput, AgentText, ModelAnswered, OutputRefused
from turnloom.agents.logic.endings import WORDS
from turnloom.agents.logic.outputs.reading import read_output
from turnloom.agents.logic.outputs.schemas import SchemaModel
from turnloom.agents.spec import (
    Agent,
    Answer,
    Exchange,
    MadeArtifact,
    OutputModel,
    Publication,
    Question,
    Task,
    ToolCall,
    ToolResult,
    Usage,
)
from turnloom.errors import EngineError
from turnloom.kernel.values import Json, as_data, as_object, is_text, preview, writable
from turnloom.log.spec import Fact
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.logic.types import is_json

# How long the answer of a person is at most, as JSON; and the text of an engine.
MOST_CHARACTERS = 1_000_000
MOST_TEXT = 10_000_000


# Half of a character that two codes stand for.
HALF = re.compile("[\ud800-\udfff]")


class Speakers(Protocol):
    """The agents whose answers are read: what they are, and what is hidden of what they say."""

    agents: Mapping[str, Agent]
    triggers: Triggers

    def shows(self, agent: str) -> bool:
        """Whether the user sees what this agent says."""
        ...


def interpret(
    task: Task, answer: Answer, workflow: Speakers, output: OutputModel | None
) -> Sequence[Fact]:
    """The facts that an engine's answer makes.

    Raises:
        EngineError: it is no answer.
    """
    _check(task, answer, output)
    turn, agent, text = task.turn, task.agent, answer.text
    answered = answered_by(task, answer, answer.calls)
    if answer.calls or output is None:
        return (answered, said_by(task, text, workflow)) if text else (answered,)
    value, problem = _form(answer, output)
    if problem is None:
        hidden = not workflow.shows(agent)
        return answered, AgentOutput(turn, agent, output.name, value, hidden=hidden)
    if not workflow.agents[agent].structured_outputs_required and not _is_data(text):
        return answered, said_by(task, text, workflow)
    answered = answered_by(task, answer, raw=text or as_data(answer.output))
    return answered, OutputRefused(turn, agent, output.name, problem)


def interpret_draft(task: Task, answer: Answer) -> Sequence[Fact]:
    """The fact that an engine answered that does not have the last word: it is told to the next
    one, and the agent says nothing of it.

    Raises:
        EngineError: it is no answer.
    """
    _check_plainly(task, answer)
    if answer.output is not None and not is_json(answer.output):
        raise EngineError(
            f"The engine of {task.agent!r} gave {preview(answer.output)} as its output, "
            "which is no JSON."
        )
    data = "" if answer.output is None else as_data(answer.output)
    return (answered_by(task, answer, answer.calls, answer.text or data),)


def answered_by(
    task: Task, answer: Answer, calls: tuple[ToolCall, ...] = (), raw: str = ""
) -> ModelAnswered:
    """The fact that an engine answered, by whom and shown what beside the task."""
    said = answer.model, answer.added, answer.before, answer.stop, answer.refusal
    return ModelAnswered(task.turn, task.agent, answer.usage, calls, raw, *said)


def mended(given: Any) -> tuple[Any, int]:
    """An answer without half characters, which cannot be stored, and how many were spelled out."""
    if type(given) is not Answer:
        return given, 0
    halves = [0]
    calls = given.calls if type(given.calls) is tuple else ()
    changed = {
        "text": _mended(given.text, halves),
        "refusal": _mended(given.refusal, halves),
        "output": _mended(given.output, halves),
        "calls": tuple(_mended_call(call, halves) for call in calls) if calls else given.calls,
    }
    return (msgspec.structs.replace(given, **changed), halves[0]) if halves[0] else (given, 0)


def _mended_call(call: Any, halves: list[int]) -> Any:
    if type(call) is not ToolCall:
        return call
    name, arguments = _mended(call.tool, halves), _mended(call.arguments, halves)
    return ToolCall(name, arguments, _mended(call.id, halves))


def _mended(value: Any, halves: list[int]) -> Any:
    """A value with its half characters spelled out, and counted."""
    if isinstance(value, str):
        found = 0 if value.isascii() else len(HALF.findall(value))
        halves[0] += found
        return writable(value) if found else value
    if not isinstance(value, dict | list) or not _is_half(value):
        return cast("Any", value)
    if isinstance(value, list):
        return [_mended(each, halves) for each in cast("list[Any]", value)]
    items = cast("dict[Any, Any]", value).items()
    return {_mended(key, halves): _mended(each, halves) for key, each in items}


def _is_half(value: Any) -> bool:
    """Whether data cannot be written down for its half characters; other reasons are told later."""
    try:
        as_data(value)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False
    return False


def as_plain(given: Any) -> Any:
    """What an engine gave as an answer: data and models are outputs."""
    if isinstance(given, BaseModel):
        return Answer(output=given.model_dump(mode="json"))
    return Answer(output=given) if isinstance(given, dict) else given


def as_answer(task: Task, given: Any) -> Answer:
    """What an engine gave as an answer; artifact values, alone or several, are published.

    Raises:
        EngineError: it is no answer.
    """
    if given is None or isinstance(given, str):
        return Answer(str.__str__(given or ""))
    if isinstance(given, dict):
        return Answer(output=given)
    if isinstance(given, Answer):
        return msgspec.structs.replace(given, artifacts=tuple(map(_publication, given.artifacts)))
    values: list[Any] = [*given] if isinstance(given, list | tuple) else [given]
    if not all(isinstance(each, BaseModel | Publication) for each in values):
        raise EngineError(
            f"The engine of {task.agent!r} gave {preview(given)}. Give a text, an Answer, or "
            "values to be published."
        )
    return Answer(artifacts=tuple(map(_publication, values)))


def _publication(value: Any) -> Publication:
    return value if isinstance(value, Publication) else Publication(value)


def interpret_made(
    task: Task, answer: Answer, workflow: Speakers, made: tuple[tuple[MadeArtifact, ...], str]
) -> Sequence[Fact]:
    """The facts that an answer makes whose artifacts were read out of it.

    Raises:
        EngineError: it is no answer.
    """
    _check_plainly(task, answer)
    turn, agent, text = task.turn, task.agent, answer.text
    things, problem = made
    if problem:
        answered = answered_by(task, answer, raw=text or as_data(answer.output))
        return answered, OutputRefused(turn, agent, ARTIFACTS, problem)
    answered = answered_by(task, answer, answer.calls)
    outputs = [
        AgentOutput(turn, agent, each.type, each.payload, False, *each[2:]) for each in things
    ]
    is_said = text and not (things and not answer.artifacts)
    words = [said_by(task, text, workflow)] if is_said else []
    return (answered, *words, *outputs)


def said_by(task: Task, text: str, workflow: Speakers) -> AgentText:
    """The fact that an agent said something, and whether the user is to see it."""
    hidden = workflow.triggers.hides(task.agent, text) or not workflow.shows(task.agent)
    return AgentText(task.turn, task.agent, text, hidden)


def _form(answer: Answer, output: OutputModel) -> tuple[Json, str | None]:
    """The output that an answer holds, or what is wrong with it."""
    try:
        value = answer.output if answer.output is not None else read_output(answer.text)
    except ValueError as error:
        return None, str(error)
    return output.validate(value)


def _is_data(text: str) -> bool:
    """Whether a text is meant as an output, right or wrong."""
    return text.lstrip()[:1] in ("{", "[") or not text.strip()


# What the form of outputs is called that are to be published.
ARTIFACTS = "artifacts"


def _check_plainly(task: Task, answer: Answer) -> None:
    who = f"The engine of {task.agent!r}"
    if type(answer) is not Answer or not is_text(answer.text):
        raise EngineError(f"{who} gave {preview(answer)}, not an Answer with a text.")
    if len(answer.text) > MOST_TEXT:
        raise EngineError(
            f"{who} gave a text of {len(answer.text):,} characters; {MOST_TEXT:,} are the most "
            "that a log keeps of one answer."
        )
    check_making(who, answer)
    if type(answer.calls) is not tuple or not all(map(_is_call, answer.calls)):
        given = preview(answer.calls)
        raise EngineError(
            f"{who} called tools with {given}. Give a tuple of `ToolCall`s: a name, and an object."
        )


def check_making(who: str, answer: Answer) -> None:
    """See that what an answer tells of its making can be written down and read again.

    Raises:
        EngineError: it cannot.
    """
    if not _is_usage(answer.usage):
        raise EngineError(f"{who} used {preview(answer.usage)}. Give a `Usage` of whole numbers.")
    if not is_text(answer.model):
        raise EngineError(f"{who} names {preview(answer.model)} as its model, which is no text.")
    if answer.stop not in ("", *WORDS):
        raise EngineError(
            f"{who} stopped by {preview(answer.stop)}. Give one of: {', '.join(WORDS)}."
        )
    if not is_text(answer.refusal):
        raise EngineError(f"{who} refused with {preview(answer.refusal)}, which is no text.")
    if type(answer.added) is not tuple or not all(map(is_text, answer.added)):
        given = preview(answer.added)
        raise EngineError(f"{who} added {given} to what it was given. Give a tuple of texts.")
    if type(answer.before) is not tuple or not all(map(_is_exchange, answer.before)):
        given = preview(answer.before)
        raise EngineError(f"{who} did {given} before. Give a tuple of `Exchange`s with JSON.")


def _is_exchange(given: object) -> bool:
    """Whether something is an exchange that can be written down, with a result for each call."""
    return (
        type(given) is Exchange
        and is_text(given.text)
        and is_text(given.problem)
        and type(given.calls) is type(given.results) is tuple
        and len(given.calls) == len(given.results)
        and all(map(_is_call, given.calls))
        and all(map(_is_result, given.results))
    )


def _is_call(given: object) -> bool:
    if type(given) is not ToolCall or not (given.tool and is_text(given.tool)):
        return False
    is_object = as_object(given.arguments) is not None
    return is_object and is_text(given.id) and is_json(given.arguments)


def _is_result(given: object) -> bool:
    return type(given) is ToolResult and is_text(given.error) and is_json(given.value)


def _is_usage(given: object) -> bool:
    if type(given) is not Usage:
        return False
    return type(given.input_tokens) is type(given.output_tokens) is int


def _check(task: Task, answer: Answer, output: OutputModel | None) -> None:
    _check_plainly(task, answer)
    who = f"The engine of {task.agent!r}"
    if answer.output is not None and output is None:
        raise EngineError(f"{who} gave an output, and no form of outputs is declared for it.")
    if answer.output is not None and not is_json(answer.output):
        raise EngineError(f"{who} gave {preview(answer.output)} as its output, which is no JSON.")


def answer_id(question: str, refused: int = 0) -> str:
    """The id of the answer to a question, behind so many that were refused."""
    return f"{question}/answer.{refused}" if refused else f"{question}/answer"


def may_answer(question: Question, by: str, user: str) -> bool:
    """Whether a person may answer a question of a run of `user`: the one who is asked, no other."""
    return by == (question.to or user)


def refusal(question: Question, value: Json, by: str, user: str) -> str | None:
    """Why a run of `user` does not take an answer, or nothing when it does."""
    if not may_answer(question, by, user):
        return f"only {question.to or user!r} can answer"
    return misanswer(question, value)


def misanswer(question: Question, value: Json) -> str | None:
    """Why a value is no answer to a question, or nothing when it is one."""
    if is_json(value) and len(as_data(value)) > MOST_CHARACTERS:
        return f"an answer has at most {MOST_CHARACTERS:,} characters"
    if question.schema is not None:
        return SchemaModel(question.tool, question.schema).validate(value).problem
    if question.tool:
        return None if is_json(value) else "an answer is JSON"
    return None if is_text(value) else f"the question takes a text, not {preview(value)}"
