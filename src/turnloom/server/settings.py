"""The table `[server]` of `turnloom.toml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from turnloom.errors import UsageError
from turnloom.kernel.values import nearest
from turnloom.server.limits import Limits
from turnloom.wiring.settings import table

_LISTS = ("hosts", "origins")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The names of a server on the network, the web pages of others that may use it, and its
    limits."""

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


def server_settings() -> ServerSettings:
    """The settings of `[server]`.

    Raises:
        UsageError: one is unknown or invalid.
    """
    given = table("server")
    if given is None:
        return ServerSettings()
    if not isinstance(given, Mapping):
        raise UsageError("`server` in turnloom.toml must be a table. Write `[server]`.")
    declared = cast("Mapping[str, Any]", given)
    kinds: dict[str, type] = {each.name: type(cast(Any, each.default)) for each in fields(Limits)}
    for name, value in declared.items():
        if name in _LISTS:
            _check_list(name, value)
        elif name not in kinds:
            near = nearest(name, [*_LISTS, *kinds])
            remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(kinds)}."
            raise UsageError(f"Unknown setting 'server.{name}'. {remedy}")
        elif type(value) is not kinds[name] and not (kinds[name] is float and type(value) is int):
            raise UsageError(f"Setting 'server.{name}' must be a number, got {value!r}.")
    limits = {name: value for name, value in declared.items() if name in kinds}
    lists = {name: tuple(declared.get(name, ())) for name in _LISTS}
    return ServerSettings(**lists, limits=Limits(**limits))


def _check_list(name: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in cast(Any, value)):
        raise UsageError(f"Setting 'server.{name}' must be a list of texts, got {value!r}.")
