"""Settings from arguments, the environment and `turnloom.toml`."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path as FilePath
from typing import Any, NamedTuple, cast

from turnloom.errors import UsageError
from turnloom.kernel.durations import length
from turnloom.kernel.values import nearest
from turnloom.variables.logic.types import FALSE, TRUE

DEFAULT_STORE = ".turnloom/turnloom.db"
DEFAULT_DOCUMENTS = "sqlite:.turnloom/documents"
DEFAULT_VECTORS = "sqlite:.turnloom/vectors.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an app. URLs are left out of its `repr`: they may contain passwords."""

    # Store of runs: `memory`, a file or a URL.
    store: str = field(default=DEFAULT_STORE, repr=False)
    # Direct URL of the PostgreSQL server of the store, if a pooler stands between; empty: `store`.
    listen_url: str = field(default="", repr=False)
    # URL of the artifacts; empty: in the store.
    artifacts: str = field(default="", repr=False)
    # Maximum number of runs driven at once.
    slots: int = 1000
    # The same for one tenant; 0: no limit besides `slots`.
    tenant_slots: int = 0
    # URL of the documents of database variables, and the timeout of a query in seconds.
    documents: str = field(default=DEFAULT_DOCUMENTS, repr=False)
    documents_timeout: float = 5.0
    # Whether a run with invalid context variables is refused.
    strict: bool = True
    # URL of the collections.
    vectors: str = field(default=DEFAULT_VECTORS, repr=False)
    # URL of the beliefs about agents; empty: in the store.
    beliefs: str = field(default="", repr=False)
    # Default model; empty: none.
    model: str = ""
    # Default engine of models.
    engine: str = "pydantic_ai"
    scheduler: str = field(default="inline", repr=False)
    # Maximum number of events queued for an observer.
    observer_queue: int = 10_000
    # Seconds that a closing app waits for its observers.
    observer_drain: float = 5.0
    # Seconds until a run of an unresponsive process may be taken over.
    lease: float = 30.0
    # Seconds after which a worker wakes runs whose wake was missed.
    sweep: float = 60.0
    # Context window of all models in tokens; 0: known by the engine.
    window: int = 0
    # When model answers are stored: after each `effect`, or at the end of a `turn`.
    durability: str = "effect"
    # Whether commits of a SQLite file wait for the disk: `full` or `normal`.
    synchronous: str = "normal"
    # How long runs are kept after they ended, as `90d`; empty: for ever.
    retention: str = ""
    # Whether failed runs are kept for ever.
    keep_failed: bool = False
    # Settings of single tenants, by name: `retention` and `keep_failed`.
    tenants: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


FILE = "turnloom.toml"

# Tables of the file that are read by the features that use them.
TABLES = ("auth", "limits", "prices", "schedule", "server")

_DEFAULTS = asdict(Settings())
_KINDS: dict[str, type] = {name: type(value) for name, value in _DEFAULTS.items()}
_WORDS: dict[type, str] = {
    str: "a non-empty string",
    int: "a positive integer",
    float: "a positive number of seconds",
    bool: "true or false",
    dict: "a table of tables, as `[tenants.acme]`",
}
# The settings that a tenant may have.
_OF_TENANTS = ("retention", "keep_failed")
# Settings with fixed values.
_CHOICES = {"durability": ("effect", "turn"), "synchronous": ("normal", "full")}
_SWITCH = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE - {""}, False)}


def settings(asked: Mapping[str, Any]) -> Settings:
    """Settings from arguments, then `TURNLOOM_*`, then `turnloom.toml`, then the defaults.

    Raises:
        UsageError: a setting is unknown or invalid.
    """
    return Settings(**{name: chosen.value for name, chosen in in_force(asked).items()})


class SettingValue(NamedTuple):
    """Value of a setting and its origin."""

    value: Any
    origin: str


def in_force(asked: Mapping[str, Any]) -> dict[str, SettingValue]:
    """All settings by name, with their origins.

    Raises:
        UsageError: a setting is unknown or invalid.
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
        raise UsageError(f"Setting {name!r} must be {_WORDS[kind]}, got {value!r}.")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise UsageError(f"Setting {name!r} must be {' or '.join(_CHOICES[name])}, got {value!r}.")
    if name == "retention" and value:
        _check_age(value)
    if name == "tenants":
        _check_tenants(value)
    return value


def _check_age(value: str) -> None:
    try:
        if length(value):
            return
    except ValueError as error:
        raise UsageError(f"Setting 'retention': {error}") from error
    raise UsageError("Setting 'retention' is 0. Write 90d, or leave it out to keep all runs.")


def _check_tenants(tables: dict[str, Any]) -> None:
    """Check the settings of each tenant."""
    for tenant, table in tables.items():
        if not isinstance(table, dict):
            raise UsageError(f"Setting 'tenants' must be {_WORDS[dict]}, got {table!r}.")
        for name, value in cast("dict[str, Any]", table).items():
            if name not in _OF_TENANTS:
                known = ", ".join(_OF_TENANTS)
                raise UsageError(f"Unknown setting {name!r} of tenant {tenant!r}. Known: {known}.")
            _setting(name, value)


def _is_allowed(value: str | float | dict[str, Any]) -> bool:
    """Whether a text is not empty, or a number is positive. Booleans and tables are always
    allowed."""
    if isinstance(value, dict):
        return True
    return value != "" if isinstance(value, str) else isinstance(value, bool) or value > 0


def _from_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, kind in _KINDS.items():
        text = os.environ.get(f"TURNLOOM_{name.upper()}")
        if text:
            found[name] = _read(kind, text)
    return found


def _read(kind: type, text: str) -> Any:
    """Parse an environment variable. Text that cannot be parsed is returned for the error
    message."""
    if kind is str:
        return text
    if kind is bool:
        return _SWITCH.get(text.strip().lower(), text)
    try:
        if kind is dict:
            return json.loads(text)
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _from_file() -> dict[str, Any]:
    return {name: value for name, value in _document().items() if name not in TABLES}


def table(name: str) -> Any:
    """A table of `turnloom.toml` that is not a setting; None if it is not there.

    Raises:
        UsageError: the file cannot be read.
    """
    return _document().get(name)


def file_text() -> str:
    """The text of `turnloom.toml`; empty if there is none.

    Raises:
        UsageError: the file cannot be read.
    """
    path = FilePath(FILE)
    try:
        return path.read_text("utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read {FILE}: {error}") from error


def _document() -> dict[str, Any]:
    try:
        return tomllib.loads(file_text())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"Cannot read {FILE}: {error}") from error
