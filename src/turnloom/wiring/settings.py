"""Settings: from arguments, the environment and `turnloom.toml`."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from turnloom.errors import UsageError
from turnloom.kernel.values import nearest
from turnloom.variables.logic.types import FALSE, TRUE

DEFAULT_STORE = ".turnloom/turnloom.db"
DEFAULT_DOCUMENTS = "sqlite:.turnloom/documents"
DEFAULT_VECTORS = "sqlite:.turnloom/vectors.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept (`memory`, a file or a URL), where artifacts and what is known of
    agents are (a URL each; empty: beside the runs), how many runs are driven at once, in all
    and of one tenant (0: as many), where the documents of database variables are found (a URL,
    and the seconds to wait for an answer), whether invalid context variables keep a run from
    starting, where collections are kept (a URL), which model answers for agents that choose no
    engine and name none (empty: nobody), which engine asks models for agents that choose none,
    what drives runs, how many events wait for an observer at most, for how many seconds
    observers are waited for when the app closes, for how many seconds a run is left to a
    process that does not respond, how many tokens fit into the window of every model (0: as its
    engine knows), whether what models answer is stored by `effect` or by `turn`, and whether
    commits of a SQLite file wait for the disk (`full`) or not (`normal`)."""

    store: str = field(default=DEFAULT_STORE, repr=False)
    artifacts: str = field(default="", repr=False)
    slots: int = 1000
    tenant_slots: int = 0
    documents: str = field(default=DEFAULT_DOCUMENTS, repr=False)
    documents_timeout: float = 5.0
    strict: bool = True
    vectors: str = field(default=DEFAULT_VECTORS, repr=False)
    beliefs: str = field(default="", repr=False)
    model: str = ""
    engine: str = "pydantic_ai"
    scheduler: str = field(default="inline", repr=False)
    observer_queue: int = 10_000
    observer_drain: float = 5.0
    lease: float = 30.0
    window: int = 0
    durability: str = "effect"
    synchronous: str = "normal"


_DEFAULTS = asdict(Settings())
_KINDS: dict[str, type] = {name: type(value) for name, value in _DEFAULTS.items()}
_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number above 0",
    float: "seconds above 0",
    bool: "true or false",
}
# Settings that take one of a few words.
_CHOICES = {"durability": ("effect", "turn"), "synchronous": ("normal", "full")}
_SWITCH = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE - {""}, False)}


def settings(asked: Mapping[str, Any]) -> Settings:
    """What was asked for, else `TURNLOOM_*`, else `turnloom.toml`, else the defaults.

    Raises:
        UsageError: a setting does not exist or is not of its type.
    """
    return Settings(**{name: chosen.value for name, chosen in in_force(asked).items()})


class SettingValue(NamedTuple):
    """The value of a setting, and where it came from."""

    value: Any
    origin: str


def in_force(asked: Mapping[str, Any]) -> dict[str, SettingValue]:
    """Every setting by name.

    Raises:
        UsageError: a setting does not exist or is not of its type.
    """
    layers = {
        "default": _DEFAULTS,
        "turnloom.toml": _from_file(),
        "environment": _from_environment(),
        "argument": {name: value for name, value in asked.items() if value is not None},
    }
    found = {
        name: SettingValue(value, origin)
        for origin, values in layers.items()
        for name, value in values.items()
    }
    return {name: each._replace(value=_setting(name, each.value)) for name, each in found.items()}


def _setting(name: str, value: Any) -> Any:
    kind = _KINDS.get(name)
    if kind is None:
        hint = nearest(name, tuple(_KINDS))
        remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(_KINDS)}."
        raise UsageError(f"Unknown setting {name!r}. {remedy}")
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or not (value == _DEFAULTS[name] or _is_allowed(value)):
        raise UsageError(f"Setting {name!r} is {value!r}; it takes {_WORDS[kind]}.")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise UsageError(f"Setting {name!r} is {value!r}; it takes {' or '.join(_CHOICES[name])}.")
    return value


def _is_allowed(value: str | float) -> bool:
    """Whether a text is not empty and a number is above 0; true and false are both fine."""
    return value != "" if isinstance(value, str) else isinstance(value, bool) or value > 0


def _from_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in _KINDS.items():
        text = os.environ.get(f"TURNLOOM_{name.upper()}")
        if text:
            found[name] = _read(kind, text)
    return found


def _read(kind: type, text: str) -> Any:
    """What an environment variable holds, or the text itself for the error to show."""
    if kind is str:
        return text
    if kind is bool:
        return _SWITCH.get(text.strip().lower(), text)
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _from_file() -> dict[str, Any]:
    path = FilePath("turnloom.toml")
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"turnloom.toml cannot be read: {error}") from error
