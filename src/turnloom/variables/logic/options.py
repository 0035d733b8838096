"""Checks of a variable's options against its type and source."""

from collections.abc import Iterator
from typing import NamedTuple

from turnloom.variables.spec import DatabaseSource, FromEnvironment, VariableDefinition


class Fault(NamedTuple):
    """An invalid option of a definition, the reason and the remedy."""

    key: str
    why: str
    remedy: str


def faults(definition: VariableDefinition) -> Iterator[Fault]:
    """The invalid options of a definition."""
    name, source = definition.name, definition.source
    stored = isinstance(source, DatabaseSource | FromEnvironment)
    if definition.secret and (not stored or source.default is not None):
        why = f"{name!r} is secret, but its value is in this file."
        remedy = "Remove `secret`, or read it from the environment or a database without a default."
        yield Fault("secret", why, remedy)
    elif definition.secret and definition.max_chars is not None:
        why = f"{name!r} is secret, and secrets are never shown, not even in part."
        yield Fault("max_chars", why, "Remove `max_chars`.")
    closed = definition.type == "boolean" or definition.enum is not None
    if definition.gate and not (isinstance(source, DatabaseSource) and closed):
        remedy = "Use a database variable that is boolean or has an `enum`, or remove `gate`."
        yield Fault("gate", f"{name!r} cannot be a gate.", remedy)
    if definition.required and not stored:
        why = f"{name!r} is required, but only external sources can lack a value."
        yield Fault("required", why, "Remove `required`.")
