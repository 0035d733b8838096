"""The plan of a board: what runs are pinned to, as text, and what differs between two."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, Field, fields
from datetime import date, timedelta
from difflib import unified_diff
from typing import Any, cast

import msgspec
from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from weft.assembly.logic.descriptions import by_agent, describe_assembly, describe_provider
from weft.assembly.spec.assemblies import Assembly
from weft.assembly.spec.formats import Budget, ContextFormat
from weft.assembly.spec.providers import Chosen
from weft.assembly.spec.sources import Share
from weft.board.spec import TypeRegistry
from weft.board.spec.visibility import is_visibility
from weft.errors import UsageError
from weft.kernel.digests import chain, digest
from weft.kernel.models import Declared
from weft.kernel.names import qualified
from weft.kernel.values import Json, writable
from weft.reaction.spec import Batch, ContextFilter, Join, Member, Plan, Product, Subscription

# What is written field by field. Everything else that is no data is known by name: code.
_WRITTEN = (
    Declared
    | Assembly
    | Batch
    | Budget
    | Chosen
    | ContextFilter
    | ContextFormat
    | Join
    | Product
    | Share
    | Subscription
)


def make_plan(
    name: str,
    members: Iterable[Member],
    limit: int,
    types: TypeRegistry,
    beside: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a board with these agents, and with what it declares beside them, by part.

    Raises:
        UsageError: two agents have one name, or a type has no JSON Schema.
    """
    by_name = _by_name(members)
    written: dict[str, Json] = {
        "board": name,
        "limit": limit,
        "agents": {each: _agent_data(member) for each, member in by_name.items()},
        "types": {each: _schema_digest(types.model(each), each) for each in _types(by_name)},
        **{part: _data(said) for part, said in (beside or {}).items() if said},
    }
    text = _text(written)
    return Plan(
        name=name,
        members=by_name,
        limit=limit,
        text=text,
        digest=digest(text),
        by_type=_by_type(by_name),
    )


def describe_plan(plan: Plan) -> str:
    """What gives each agent of a board its context, for people."""
    return by_agent({name: _described(member) for name, member in plan.members.items()})


def _described(member: Member) -> str:
    own = [
        f"{each.id}: {describe_provider(each.context)}"
        for each in member.subscriptions
        if each.context is not None
    ]
    return "\n".join([_described_context(member.context), *own])


def _described_context(context: Chosen | ContextFilter | Assembly | None) -> str:
    match context:
        case Assembly():
            return describe_assembly(context)
        case Chosen():
            return describe_provider(context)
        case ContextFilter():
            said = _data_of(context).items()
            return f"artifacts by filter: {', '.join(f'{key}={value}' for key, value in said)}"
        case None:
            return "artifacts with the correlation id"


def subscription_digest(plan: Plan, subscription: Subscription) -> str:
    """The digest of what one subscription of a board says, wherever it stands among others.

    Runs that collect for it live long: they are pinned to this, and nothing else disturbs them.
    """
    return chain(plan.name, _text(_data_of(subscription, without="id")))


def plan_diff(old_text: str, new_text: str) -> str:
    """What differs between the texts of two plans, part by part; empty if nothing does."""
    old, new = _parts(old_text), _parts(new_text)
    return "\n".join(
        line
        for part in dict.fromkeys((*old, *new))
        for line in unified_diff(
            _lines(old.get(part)), _lines(new.get(part)), f"{part} then", f"{part} now", lineterm=""
        )
    )


def _by_name(members: Iterable[Member]) -> dict[str, Member]:
    found: dict[str, Member] = {}
    for member in members:
        name = member.agent.name
        if name in found:
            raise UsageError(f"Two agents of the board are called {name!r}. Rename one of them.")
        found[name] = member
    return found


def _by_type(members: Mapping[str, Member]) -> dict[str, tuple[Subscription, ...]]:
    found: dict[str, list[Subscription]] = {}
    for member in members.values():
        for each in member.subscriptions:
            for type in dict.fromkeys(each.types):
                found.setdefault(type, []).append(each)
    return {
        type: tuple(sorted(subscriptions, key=lambda each: -each.priority))
        for type, subscriptions in found.items()
    }


def _types(members: Mapping[str, Member]) -> list[str]:
    consumed = {type for each in members.values() for s in each.subscriptions for type in s.types}
    return sorted(consumed | {p.type for each in members.values() for p in each.products})


def _agent_data(member: Member) -> Json:
    return _data_of(member.agent, without="name") | _data_of(member, without="agent")


def _data_of(declared: Any, without: str = "") -> dict[str, Json]:
    """What a declaration says beyond its defaults, so that an option that nobody uses changes no
    plan that runs are pinned to."""
    return {
        name: _data(value)
        for name, default in _defaults(declared)
        if name != without and (value := getattr(declared, name)) != default
    }


def _defaults(declared: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(declared, Declared):
        for name, field in type(declared).model_fields.items():
            yield name, field.get_default(call_default_factory=True)
    else:
        for field in fields(declared):
            yield field.name, _default(field)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _data(value: Any) -> Json:
    """A declared value as JSON that is the same in every process."""
    match value:
        case _ if callable(value):
            return qualified(value)
        case None | bool() | int() | float() | str():
            return value
        case date() | timedelta():
            return to_jsonable_python(value)
        case Set():
            return sorted(map(_data, cast(Set[Any], value)), key=json.dumps)
        case list() | tuple():
            return [_data(each) for each in cast(Sequence[Any], value)]
        case Mapping():
            entries = cast(Mapping[Any, Any], value)
            return {str(key): _data(entries[key]) for key in sorted(entries, key=str)}
        case _:
            return _declared_data(value)


def _declared_data(value: object) -> Json:
    if isinstance(value, _WRITTEN):
        return _data_of(value)
    if is_visibility(value):
        return msgspec.to_builtins(value, order="deterministic")
    return qualified(value)


def _schema_digest(model: type[BaseModel], name: str) -> str:
    try:
        schema = model.model_json_schema(schema_generator=_SteadySchema)
    except PydanticUserError as error:
        said = str(error).splitlines()[0]
        raise UsageError(
            f"Type {name!r} has no JSON Schema: {said} Annotate that field with `WithJsonSchema`."
        ) from error
    return digest(json.dumps(schema, sort_keys=True))


class _SteadySchema(GenerateJsonSchema):
    """Writes defaults that are sets in one order, in every process."""

    def encode_default(self, dft: Any) -> Json:
        """The default of a field as JSON."""
        return _data(dft)


def _text(written: Json) -> str:
    return writable(json.dumps(written, indent=2, ensure_ascii=False))


def _parts(text: str) -> dict[str, Json]:
    """The plan in parts, so that what differs is shown under the name of its agent."""
    plan: dict[str, Json] = json.loads(text)
    agents: dict[str, Json] = plan["agents"]
    named = {f"agent {name!r}": written for name, written in agents.items()}
    return {"board": plan | {"agents": list(agents)}, **named}


def _lines(written: Json) -> list[str]:
    """A part line by line; without commas, an entry that is added changes no line before it."""
    return [] if written is None else [line.rstrip(",") for line in _text(written).splitlines()]
