"""The kinds of triggers and what they listen to; `register` adds more.

A kind of trigger is a model (the declaration) and a `listen` function: given the declared trigger,
it returns the topics it listens to and a function that reads a value from a fact:

    class Shouted(Setting):
        type: Literal["shouted"]
        agent: str

    def listen(trigger, writer):
        def read(fact, seen):
            return trigger.value if fact.text.isupper() else UNCHANGED

        return Listener((("agent.text", trigger.agent),), read)

    register(Shouted, listen)
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, Protocol, Union, get_args

from pydantic import Field, create_model

from turnloom.errors import UsageError
from turnloom.kernel.values import Json, as_array, as_object
from turnloom.variables.logic.matching import TextPattern, reader
from turnloom.variables.logic.types import same
from turnloom.variables.spec.definitions import (
    DatabaseSource,
    Derived,
    FileSource,
    FromEnvironment,
    Static,
    VariableDefinition,
)
from turnloom.variables.spec.triggers import (
    UNCHANGED,
    AgentTextTrigger,
    AgentTurnCount,
    ContextChange,
    Function,
    TextTrigger,
    TimerTrigger,
    ToolResponse,
    Trigger,
    UiResponse,
    UserTextTrigger,
)

# The author of the user's messages; the workflow has one too.
_USER = "user"

# The topic of a fact: its kind, and the agent, tool, variable or timer it names.
Topic = tuple[str, str]

# The field of each kind of fact that names its subject.
SUBJECTS = {
    "run.started": "",
    "agent.text": "agent",
    "agent.output": "agent",
    "user.text": "author",
    "turn.finished": "agent",
    "tool.returned": "tool",
    "tool.failed": "tool",
    "question.answered": "tool",
    "context.changed": "name",
    "timer.expired": "timer",
}


class Seen(Protocol):
    """The state that a trigger may read besides the fact."""

    values: dict[str, Json]
    turns_of: dict[str, int]


class Listener(NamedTuple):
    """The topics of a trigger, and the function that reads a value or `UNCHANGED` from a fact."""

    topics: tuple[Topic, ...]
    read: Callable[[Any, Seen], Any]
    reading: TextPattern | None = None
    restarts: Topic | None = None


Listen = Callable[[Any, str], Listener]


class TriggerKind(NamedTuple):
    """A kind of trigger: its model and its `listen` function."""

    model: type[Trigger]
    listen: Listen


def _agent_text(trigger: AgentTextTrigger, writer: str) -> Listener:
    reading = reader(trigger)
    return Listener((("agent.text", trigger.agent),), _found(trigger, reading), reading)


def _user_text(trigger: UserTextTrigger, writer: str) -> Listener:
    return Listener((("user.text", _USER),), _found(trigger, reader(trigger)))


def _found(trigger: TextTrigger, reading: TextPattern) -> Callable[[Any, Seen], Any]:
    def read(fact: Any, seen: Seen) -> Any:
        found = reading.find(fact.text)
        if found is None:
            return UNCHANGED
        return found if trigger.capture is not None else trigger.value

    return read


def _ui_response(trigger: UiResponse, writer: str) -> Listener:
    if trigger.apply != "auto":
        return Listener((), _nothing)

    def read(fact: Any, seen: Seen) -> Any:
        return value_at(fact.value, trigger.response_key)

    return Listener((("question.answered", trigger.tool),), read)


def _agent_turn_count(trigger: AgentTurnCount, writer: str) -> Listener:
    def read(fact: Any, seen: Seen) -> Any:
        taken = seen.turns_of.get(trigger.agent, 0)
        return trigger.value if taken == trigger.count else UNCHANGED

    return Listener((("turn.finished", trigger.agent),), read)


def _tool_response(trigger: ToolResponse, writer: str) -> Listener:
    kinds = {"success": ["tool.returned"], "error": ["tool.failed"]}
    heard = kinds.get(trigger.status, ["tool.returned", "tool.failed"])

    def read(fact: Any, seen: Seen) -> Any:
        given = getattr(fact, "result", None)
        if trigger.path is not None and not _agrees(trigger, value_at(given, trigger.path)):
            return UNCHANGED
        return trigger.value if trigger.source is None else value_at(given, trigger.source)

    return Listener(tuple((kind, trigger.tool) for kind in heard), read)


def _agrees(trigger: ToolResponse, found: Any) -> bool:
    if found is UNCHANGED:
        return False
    if "equals" in trigger.model_fields_set and not same(found, trigger.equals):
        return False
    if trigger.contains is None:
        return True
    whole = found if isinstance(found, str) else as_array(found) or ()
    return trigger.contains in whole


def _timer_expired(trigger: TimerTrigger, writer: str) -> Listener:
    kind, _, name = trigger.since.partition(":")
    kinds = {"agent": "turn.finished", "variable": "context.changed"}
    restarts = (kinds.get(kind, "run.started"), name)

    def read(fact: Any, seen: Seen) -> Any:
        return trigger.value

    return Listener((("timer.expired", writer),), read, None, restarts)


def _context_changed(trigger: ContextChange, writer: str) -> Listener:
    def read(fact: Any, seen: Seen) -> Any:
        return trigger.value if same(fact.value, trigger.equals) else UNCHANGED

    return Listener((("context.changed", trigger.variable),), read)


def _function(trigger: Function, writer: str) -> Listener:
    return Listener((), _nothing)


def _nothing(fact: Any, seen: Seen) -> Any:
    return UNCHANGED


def value_at(value: Json, path: str) -> Any:
    """The value at a dotted path, or `UNCHANGED` if there is none."""
    for step in path.split("."):
        mapping, items = as_object(value), as_array(value)
        if mapping is not None and step in mapping:
            value = mapping[step]
        elif items is not None and step.isdecimal() and int(step) < len(items):
            value = items[int(step)]
        else:
            return UNCHANGED
    return value


TRIGGER_LOADERS: dict[str, TriggerKind] = {}


def register(model: type[Trigger], listen: Listen) -> None:
    """Add a kind of trigger, named by the literal of the model's `type`."""
    (name,) = get_args(model.model_fields["type"].annotation)
    TRIGGER_LOADERS[name] = TriggerKind(model, listen)


for _model, _listen in (
    (AgentTextTrigger, _agent_text),
    (UserTextTrigger, _user_text),
    (UiResponse, _ui_response),
    (AgentTurnCount, _agent_turn_count),
    (ToolResponse, _tool_response),
    (TimerTrigger, _timer_expired),
    (ContextChange, _context_changed),
    (Function, _function),
):
    register(_model, _listen)


_models: dict[tuple[str, ...], type[VariableDefinition]] = {}


def definition_model() -> type[VariableDefinition]:
    """The definition model with every kind of trigger registered so far."""
    kinds = tuple(TRIGGER_LOADERS)
    if kinds not in _models:
        models = tuple(TRIGGER_LOADERS[kind].model for kind in kinds)
        triggers = (tuple[_one_of(models), ...], Field(default=(), strict=False))
        derived = _create("Derived", __base__=Derived, triggers=triggers)
        source = _one_of((Static, FromEnvironment, DatabaseSource, FileSource, derived))
        _models[kinds] = _create(
            "VariableDefinition", __base__=VariableDefinition, source=(source, ...)
        )
    return _models[kinds]


# Types created at run time, which type checkers cannot follow.
_create: Any = create_model
_annotated: Any = Annotated
_union: Any = Union


def _one_of(models: tuple[type, ...]) -> Any:
    return _annotated[_union[models], Field(discriminator="type")]


def topic_of(kind: str, fact: Any) -> Topic | None:
    """The topic of a fact, if triggers can listen to it."""
    field = SUBJECTS.get(kind)
    if field is None:
        return None
    return kind, getattr(fact, field) if field else ""


def listeners(
    definitions: Mapping[str, VariableDefinition],
) -> list[tuple[VariableDefinition, Trigger, str, Listener]]:
    """Every trigger of every derived variable, with its writer name, in declared order.

    Raises:
        UsageError: a trigger listens to a kind of fact that has no topic.
    """
    found: list[tuple[VariableDefinition, Trigger, str, Listener]] = []
    for definition in definitions.values():
        if isinstance(definition.source, Derived):
            for number, trigger in enumerate(definition.source.triggers):
                writer = f"trigger:{definition.name}[{number}]"
                listener = TRIGGER_LOADERS[trigger.type].listen(trigger, writer)
                _check_topics(trigger, listener)
                found.append((definition, trigger, writer, listener))
    return found


def _check_topics(trigger: Trigger, listener: Listener) -> None:
    for kind, _ in (*listener.topics, *filter(None, [listener.restarts])):
        if kind not in SUBJECTS:
            raise UsageError(
                f"Trigger {trigger.type!r} listens to {kind!r}, which no trigger can hear, so it "
                f"would never fire. Choose one of {', '.join(SUBJECTS)}."
            )
