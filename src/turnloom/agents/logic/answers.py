"""Interpretation of answers from engines and from people."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import msgspec
from msgspec.structs import astuple
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
from turnloom.kernel.roles import ROLES, TO_ROLE
from turnloom.kernel.values import Json, as_data, as_object, is_name, is_text, preview, writable
from turnloom.log.spec import Fact
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.logic.types import is_json

# Maximum length of a person's answer, as JSON, and of an engine's text.
MOST_CHARACTERS = 1_000_000
MOST_TEXT = 10_000_000

# What an answer may say about how it ended.
STOPS = ("", *WORDS)


# A lone surrogate, which UTF-8 cannot encode.
HALF = re.compile("[\ud800-\udfff]")


class Speakers(Protocol):
    """The agents of a workflow, and whether the user sees their messages."""

    agents: Mapping[str, Agent]
    triggers: Triggers

    def shows(self, agent: str) -> bool:
        """Whether the user sees this agent's messages."""
        ...


def interpret(
    task: Task, answer: Answer, workflow: Speakers, output: OutputModel | None
) -> Sequence[Fact]:
    """The facts of an engine's answer.

    Raises:
        EngineError: the answer is invalid.
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
    """The facts of an answer that is not the last of the engine chain: the next engine receives it,
    and the agent says nothing.

    Raises:
        EngineError: the answer is invalid.
    """
    _check_plainly(task, answer)
    if answer.output is not None and not is_json(answer.output):
        raise EngineError(
            f"The engine of {task.agent!r} returned {preview(answer.output)} as its output. "
            "Return a JSON value."
        )
    data = "" if answer.output is None else as_data(answer.output)
    return (answered_by(task, answer, answer.calls, answer.text or data),)


def answered_by(
    task: Task, answer: Answer, calls: tuple[ToolCall, ...] = (), raw: str = ""
) -> ModelAnswered:
    """The fact that an engine answered."""
    said = answer.model, answer.added, answer.before, answer.stop, answer.refusal
    return ModelAnswered(task.turn, task.agent, answer.usage, calls, raw, *said)


def mended(given: Any) -> tuple[Any, int]:
    """An answer with its lone surrogates escaped, since they cannot be stored, and their number."""
    if type(given) is not Answer or _is_ascii(given):
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


def _is_ascii(answer: Answer) -> bool:
    """Whether an answer is nothing but ASCII text."""
    if answer.output is not None or type(answer.calls) is not tuple or answer.calls:
        return False
    texts = answer.text, answer.refusal
    return all([type(text) is str and text.isascii() for text in texts])


def _mended_call(call: Any, halves: list[int]) -> Any:
    if type(call) is not ToolCall:
        return call
    name, arguments = _mended(call.tool, halves), _mended(call.arguments, halves)
    return ToolCall(name, arguments, _mended(call.id, halves))


def _mended(value: Any, halves: list[int]) -> Any:
    """A value with its lone surrogates escaped and counted."""
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
    """Whether lone surrogates prevent encoding; other errors are reported later."""
    try:
        as_data(value)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False
    return False


def as_plain(given: Any) -> Any:
    """Wrap data and models in an answer, as its output."""
    if isinstance(given, BaseModel):
        return Answer(output=given.model_dump(mode="json"))
    return Answer(output=given) if isinstance(given, dict) else given


def as_answer(task: Task, given: Any) -> Answer:
    """Convert what an engine returned to an answer; artifact values, alone or in a list, are
    published.

    Raises:
        EngineError: the value is not an answer.
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
            f"The engine of {task.agent!r} returned {preview(given)}. Return a text, an Answer, "
            "or values to publish."
        )
    return Answer(artifacts=tuple(map(_publication, values)))


def _publication(value: Any) -> Publication:
    return value if isinstance(value, Publication) else Publication(value)


def interpret_made(
    task: Task, answer: Answer, workflow: Speakers, made: tuple[tuple[MadeArtifact, ...], str]
) -> Sequence[Fact]:
    """The facts of an answer and of the artifacts in it.

    Raises:
        EngineError: the answer is invalid.
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
    """The fact of an agent's text, and whether it is hidden from the user."""
    hidden = workflow.triggers.hides(task.agent, text) or not workflow.shows(task.agent)
    return AgentText(task.turn, task.agent, text, hidden)


def _form(answer: Answer, output: OutputModel) -> tuple[Json, str | None]:
    """The output in an answer, or its problem."""
    try:
        value = answer.output if answer.output is not None else read_output(answer.text)
    except ValueError as error:
        return None, str(error)
    return output.validate(value)


def _is_data(text: str) -> bool:
    """Whether a text is meant as an output, valid or not."""
    return text.lstrip()[:1] in ("{", "[") or not text.strip()


# The name of the output schema for artifacts.
ARTIFACTS = "artifacts"


def _check_plainly(task: Task, answer: Answer) -> None:
    who = f"The engine of {task.agent!r}"
    if type(answer) is not Answer or not is_text(answer.text):
        raise EngineError(f"{who} returned {preview(answer)}. Return an Answer with a text.")
    if len(answer.text) > MOST_TEXT:
        raise EngineError(
            f"{who} returned a text of {len(answer.text):,} characters. "
            f"The limit is {MOST_TEXT:,} characters."
        )
    check_making(who, answer)
    if type(answer.calls) is not tuple or not all(map(_is_call, answer.calls)):
        given = preview(answer.calls)
        raise EngineError(
            f"{who} returned {given} as `calls`. Return a tuple of `ToolCall`s with a name and an "
            "object of arguments."
        )


def check_making(who: str, answer: Answer) -> None:
    """Check that the metadata of an answer can be stored.

    Raises:
        EngineError: it cannot.
    """
    if not _is_usage(answer.usage):
        raise EngineError(
            f"{who} returned {preview(answer.usage)} as `usage`. Return a `Usage` of integers."
        )
    if not is_text(answer.model):
        raise EngineError(f"{who} returned {preview(answer.model)} as `model`. Return a text.")
    if answer.stop not in STOPS:
        raise EngineError(
            f"{who} returned {preview(answer.stop)} as `stop`. Return one of: {', '.join(WORDS)}."
        )
    if not is_text(answer.refusal):
        raise EngineError(f"{who} returned {preview(answer.refusal)} as `refusal`. Return a text.")
    if type(answer.added) is not tuple or not all(map(is_text, answer.added)):
        given = preview(answer.added)
        raise EngineError(f"{who} returned {given} as `added`. Return a tuple of texts.")
    if type(answer.before) is not tuple or not all(map(_is_exchange, answer.before)):
        given = preview(answer.before)
        raise EngineError(
            f"{who} returned {given} as `before`. Return a tuple of `Exchange`s with JSON values."
        )


def _is_exchange(given: object) -> bool:
    """Whether something is an exchange that can be stored, with a result for each call."""
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
    return type(given) is Usage and {*map(type, astuple(given))} == {int}


def _check(task: Task, answer: Answer, output: OutputModel | None) -> None:
    _check_plainly(task, answer)
    if answer.output is None:
        return
    who = f"The engine of {task.agent!r}"
    if output is None:
        raise EngineError(
            f"{who} returned an output, but the agent declares none. Set `structured_outputs`."
        )
    if not is_json(answer.output):
        raise EngineError(
            f"{who} returned {preview(answer.output)} as its output. Return a JSON value."
        )


def answer_id(question: str, refused: int = 0) -> str:
    """The id of the answer to a question, after `refused` rejected ones."""
    return f"{question}/answer.{refused}" if refused else f"{question}/answer"


class Answerer(NamedTuple):
    """The person who answers, with their role if it is known."""

    user: str
    role: str = ""


def may_answer(question: Question, by: Answerer, user: str) -> bool:
    """Whether a person may answer a question: only its addressees, by default the run's user."""
    return any(_is_asked(to, by) for to in question.among or (question.to or user,))


def _is_asked(to: str, by: Answerer) -> bool:
    """Whether an addressee is this person, or a role that they have or that includes theirs."""
    if not to.startswith(TO_ROLE):
        return to == by.user
    role = to.removeprefix(TO_ROLE)
    known: Sequence[str] = ROLES
    return role in known and by.role in known[known.index(role) :]


def read_addressees(given: object) -> tuple[str, ...]:
    """The addressees of a question: one or several names of people or roles, each once.

    Raises:
        ValueError: one is not a name, or a role is unknown.
    """
    several = isinstance(given, list | tuple | set | frozenset)
    names: list[object] = [*cast("Iterable[object]", given)] if several else [given]
    for name in names:
        if not is_name(name) or not name.strip():
            raise ValueError(f"{preview(name)} is no name of a person or a role")
        role = name.removeprefix(TO_ROLE)
        if name.startswith(TO_ROLE) and role not in ROLES:
            raise ValueError(f"unknown role {role!r}; the roles are {', '.join(ROLES)}")
    if not names:
        raise ValueError("there is no addressee")
    return tuple(dict.fromkeys(cast("list[str]", names)))


def addressing(to: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The fields `to` and `among` of a question to these addressees."""
    return " or ".join(to), to if len(to) > 1 else ()


def refusal(question: Question, value: Json, by: Answerer, user: str) -> str | None:
    """Why a run of `user` rejects an answer, or None if it accepts it."""
    if not may_answer(question, by, user):
        return f"only {question.to or user!r} can answer"
    return misanswer(question, value)


def misanswer(question: Question, value: Json) -> str | None:
    """Why a value is not a valid answer to a question, or None if it is."""
    if is_json(value) and len(as_data(value)) > MOST_CHARACTERS:
        return f"an answer may have at most {MOST_CHARACTERS:,} characters"
    if question.schema is not None:
        return SchemaModel(question.tool, question.schema).validate(value).problem
    if question.tool:
        return None if is_json(value) else "an answer must be JSON"
    return None if is_text(value) else f"expected a text, got {preview(value)}"
