"""Secrets of a run that is replayed."""

from typing import Any, TypeVar, cast

import msgspec

from turnloom.kernel.digests import digest
from turnloom.kernel.marks import BEGIN, mark
from turnloom.kernel.values import Json, as_array, as_object
from turnloom.log.spec import Event, Fact
from turnloom.runtime.journal import Journal
from turnloom.variables.logic.secrets import NAMES, Secrets, secrets_of
from turnloom.variables.spec import Variables

T = TypeVar("T", bound=msgspec.Struct)


def known_secrets(variables: Variables, known: Secrets) -> Secrets:
    """The secrets that a workflow declares. User code is given a placeholder for one that cannot be
    read any more, and that is masked like the secret itself."""
    values = dict(known.items())
    names = [name for name, each in variables.definitions.items() if each.secret]
    return secrets_of({name: values.get(name, f"secret-{digest(name)}") for name in names})


def fact_of(journal: Journal, event: Event) -> Fact:
    """The fact of an event as it came from the world: with secrets in place of marks."""
    return unmasked(event.data, journal.secrets) if journal.has_secrets else event.data


def unmasked(fact: T, secrets: Secrets) -> T:
    """A recorded fact as it came from the world, with secrets in place of marks."""
    fields = {name: getattr(fact, name) for name in fact.__struct_fields__ if name not in NAMES}
    opened = {name: _unmasked(value, secrets) for name, value in fields.items()}
    return fact if opened == fields else msgspec.structs.replace(fact, **opened)


def _unmasked(value: Any, secrets: Secrets) -> Any:
    if isinstance(value, str):
        return _text(value, secrets) if BEGIN in value else value
    if isinstance(value, msgspec.Struct):
        return unmasked(value, secrets)
    if isinstance(value, tuple | frozenset):
        items = cast(tuple[Any, ...], value)
        return type(items)(_unmasked(each, secrets) for each in items)
    if (mapping := as_object(value)) is not None:
        pairs = mapping.items()
        return {_unmasked(key, secrets): _unmasked(each, secrets) for key, each in pairs}
    if (array := as_array(value)) is not None:
        return [_unmasked(each, secrets) for each in array]
    return value


def _text(text: str, secrets: Secrets) -> str:
    for name, value in secrets.items():
        text = text.replace(mark(name), _longest(value))
    return text


def _longest(value: Json) -> str:
    """The longest text in a secret, which is masked wherever it stands."""
    if (mapping := as_object(value)) is not None:
        return max(map(_longest, mapping.values()), key=len, default="")
    if (array := as_array(value)) is not None:
        return max(map(_longest, array), key=len, default="")
    return str(value)
