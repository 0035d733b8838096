"""Questions as people read them: in full before an answer, in one line when a run waits."""

import json
from collections.abc import Iterator, Mapping, Sequence

from turnloom.agents.logic.answers import Answerer, may_answer
from turnloom.agents.spec import SELECTOR, Question
from turnloom.cli.forms import AnswerForm, word
from turnloom.explain.spec.text import moment, one_line
from turnloom.flow.logic.approvals import APPROVAL
from turnloom.kernel.values import Json, as_array, as_data, as_object
from turnloom.log.logic import started_of
from turnloom.log.spec import Event

# Fields of a payload that are shown before the others.
WORDS = ("title", "prompt", "question", "message", "description")

# A longer value is written over several lines.
WIDTH = 80


def question_text(question: Question) -> str:
    """The full text of the question."""
    return "\n".join(_lines(question))


def _lines(question: Question) -> Iterator[str]:
    payload = as_object(question.payload) or {}
    said = [payload[key] for key in WORDS if isinstance(payload.get(key), str)]
    heads = said or ([question.prompt] if question.prompt else [])
    yield from heads
    if question.tool and not heads:
        yield f"{question.tool} asks:"
    if question.tool == APPROVAL:
        yield from _options(payload)
        payload = {}
    for key, value in payload.items():
        if not (key in WORDS and isinstance(value, str)):
            yield f"{key}: {tidy(value)}"
    if question.payload is not None and not isinstance(question.payload, dict):
        yield tidy(question.payload)
    if question.due is not None:
        yield f"An answer counts until {moment(question.due)}."


def _options(payload: Mapping[str, Json]) -> Iterator[str]:
    """The approver, the subject, and the options that have a description."""
    yield f"{payload.get('approver')} is asked to decide on {payload.get('approval')}."
    for option in map(as_object, as_array(payload.get("options")) or ()):
        said = option and [option[key] for key in ("label", "description") if option.get(key)]
        if option and said and [word(option["id"])] != [each.lower() for each in said]:
            yield f"{option['id']}: {'. '.join(said)}"


def gist(question: Question) -> str:
    """The question and what it takes, on one line; nothing if it is the user's turn to speak."""
    if not question.tool:
        return one_line(question.prompt)
    asked = question.prompt or ("" if question.payload is None else as_data(question.payload))
    who = "" if question.tool == SELECTOR else f"{question.tool} asks: "
    return f"{who}{one_line(asked)} (takes {one_line(AnswerForm(question).demand, 200)})"


def is_asked(question: Question, user: str) -> bool:
    """Whether a person is asked by name."""
    return may_answer(question, Answerer(user), user)


def addressee(events: Sequence[Event], question: Question) -> str:
    """The addressee, if it is not the run's user."""
    return "" if question.to == started_of(events).user else question.to


def example(question: Question) -> str:
    """An example answer for the command line."""
    return AnswerForm(question).example if question.tool else "your answer"


def tidy(value: Json) -> str:
    """A value as readable JSON; a text as it is."""
    short = word(value)
    if len(short) <= WIDTH or not (as_object(value) or as_array(value)):
        return short
    return json.dumps(value, indent=2, ensure_ascii=False)
