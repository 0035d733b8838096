"""What a definition says beside its type and source, and whether that goes together."""

from collections.abc import Iterator
from typing import NamedTuple

from turnloom.variables.spec import DatabaseSource, FromEnvironment, VariableDefinition


class Fault(NamedTuple):
    """An option that a definition cannot have, why, and what to do."""

    key: str
    why: str
    remedy: str


def faults(definition: VariableDefinition) -> Iterator[Fault]:
    """The options that a definition cannot have."""
    name, source = definition.name, definition.source
    stored = isinstance(source, DatabaseSource | FromEnvironment)
    if definition.secret and (not stored or source.default is not None):
        why = f"{name!r} is secret, and its value would stand in this file."
        remedy = "Drop `secret`, or read it from the environment or a database without a default."
        yield Fault("secret", why, remedy)
    elif definition.secret and definition.max_chars is not None:
        why = f"{name!r} is secret, and a part of a secret is shown to nobody."
        yield Fault("max_chars", why, "Drop `max_chars`.")
    closed = definition.type == "boolean" or definition.enum is not None
    if definition.gate and not (isinstance(source, DatabaseSource) and closed):
        remedy = "Use a database variable that is boolean or has an `enum`, or drop `gate`."
        yield Fault("gate", f"{name!r} cannot be a gate.", remedy)
    if definition.required and not stored:
        why = f"{name!r} is required, but only outside sources can lack a value."
        yield Fault("required", why, "Drop `required`.")
