"""First values: what each declaration gives, from readings of the environment taken before."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from weft.kernel.values import Json
from weft.variables.events import ContextLoaded, ContextSuppressed, Loaded
from weft.variables.logic.types import coerce
from weft.variables.spec import BAKED_IN, Definition, Derived, FromEnvironment, Static, Variables

PRODUCTION = "ENVIRONMENT"


class Readings(NamedTuple):
    """What the environment said: is this production, and the variables that were asked for."""

    production: bool
    values: Mapping[str, str | None]


def wanted(variables: Variables) -> tuple[str, ...]:
    """The environment variables that a workflow asks for."""
    return tuple(source.env_var for _, source in _from_environment(variables))


def resolve(
    variables: Variables, base: Mapping[str, Json], readings: Readings
) -> tuple[ContextLoaded, ContextSuppressed | None]:
    """The first value of everything: ids, then definitions in declared order."""
    loaded = [Loaded(name, "base", value) for name, value in base.items()]
    flagged = [] if readings.production else list(_from_environment(variables))
    loaded += [_flag(definition, source, readings) for definition, source in flagged]
    for definition in variables.definitions.values():
        match definition.source:
            case Static(value=value):
                loaded.append(Loaded(definition.name, "static", value))
            case Derived(default=default):
                loaded.append(Loaded(definition.name, "derived", default, defaulted=True))
            case FromEnvironment():
                pass
    return ContextLoaded(tuple(loaded)), _suppressed(variables, readings)


def _suppressed(variables: Variables, readings: Readings) -> ContextSuppressed | None:
    names = tuple(definition.name for definition, _ in _from_environment(variables))
    if not (readings.production and names):
        return None
    return ContextSuppressed(names, "ENVIRONMENT=production has no environment variables")


def _from_environment(variables: Variables) -> Iterator[tuple[Definition, FromEnvironment]]:
    """Declared flags and those baked in that no definition replaces."""
    for name, env_var in BAKED_IN.items():
        if name not in variables.definitions:
            source = FromEnvironment(type="environment", env_var=env_var, default=False)
            yield Definition(name=name, type="boolean", source=source), source
    for definition in variables.definitions.values():
        if isinstance(definition.source, FromEnvironment):
            yield definition, definition.source


def _flag(definition: Definition, source: FromEnvironment, readings: Readings) -> Loaded:
    text = readings.values.get(source.env_var)
    if text is None:
        return Loaded(definition.name, "environment", source.default, defaulted=True)
    coerced = coerce(definition, text)
    value = source.default if coerced.failed else coerced.value
    raw = text.encode("utf-8", "backslashreplace").decode()
    return Loaded(definition.name, "environment", value, raw, coerced.failed, coerced.note)
