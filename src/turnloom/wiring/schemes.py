"""URL schemes of settings, and the packages that add schemes by entry points."""

import re
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from turnloom.errors import TurnloomError, UsageError
from turnloom.kernel.values import nearest
from turnloom.wiring.doors import DOORS, check_object
from turnloom.wiring.settings import Settings

# Entry point group of each setting.
GROUPS = {
    "store": "turnloom.stores",
    "artifacts": "turnloom.artifacts",
    "beliefs": "turnloom.beliefs",
    "documents": "turnloom.documents",
    "vectors": "turnloom.vectors",
    "scheduler": "turnloom.schedulers",
    "engine": "turnloom.engines",
}


def added(setting: str) -> list[str]:
    """Names that packages add to a setting."""
    return sorted(entry_points(group=GROUPS[setting]).names)


def plugin(setting: str, name: str) -> Callable[[str], Any] | None:
    """Return the factory that a package adds under a name, or None.

    Raises:
        UsageError: two packages add the name, or it cannot be imported.
    """
    found = {_package(each): each for each in entry_points(group=GROUPS[setting], name=name)}
    if len(found) > 1:
        packages = ", ".join(sorted(found))
        raise UsageError(f"{setting} {name!r} is provided by {packages}. Uninstall all but one.")
    for package, entry in found.items():
        return _load(setting, entry, package)
    return None


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _load(setting: str, entry: EntryPoint, package: str) -> Callable[[str], Any]:
    what = f"{setting} {entry.name!r} of package {package!r}"
    try:
        make: Any = entry.load()
    except Exception as error:
        raise UsageError(f"{what} cannot be imported: {_safe_text(error)}") from error
    if not callable(make):
        raise UsageError(f"{what} is {entry.value!r}, which is not callable.")

    def made(given: str) -> Any:
        try:
            each: Any = make(given)
        except TurnloomError:
            raise
        except Exception as error:
            raise UsageError(f"{what} cannot be created: {_safe_text(error)}") from error
        check_object(f"The object of {what}", DOORS[setting].port, each)
        return each

    return made


def _safe_text(error: Exception) -> str:
    """Text of an import error. Of other errors only the type, since their text may contain a
    password."""
    return str(error) if isinstance(error, ImportError) else type(error).__name__


# A scheme has at least two characters before the colon: `C:` is a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*")

# How a connection string of libpq begins, which is no URL and no file name.
_PAIRS = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=")

SQLITE = "sqlite"
POSTGRES: tuple[str, ...] = ("postgresql", "postgres")


class KnownSchemes(NamedTuple):
    """Schemes that a setting accepts, each with its syntax; and whether it may be empty, or a file
    name."""

    schemes: Mapping[str, str]
    may_be_empty: bool = False
    may_be_file: bool = False


_POSTGRES: dict[str, str] = dict.fromkeys(POSTGRES, "postgresql://…")

KNOWN: dict[str, KnownSchemes] = {
    "store": KnownSchemes(
        {"memory": "memory", SQLITE: "sqlite:FILE", **_POSTGRES}, may_be_file=True
    ),
    "artifacts": KnownSchemes(_POSTGRES, may_be_empty=True),
    "beliefs": KnownSchemes(_POSTGRES, may_be_empty=True),
    "documents": KnownSchemes(
        {
            SQLITE: "sqlite:FOLDER",
            **_POSTGRES,
            "mongodb": "mongodb://…",
            "mongodb+srv": "mongodb+srv://…",
        }
    ),
    "vectors": KnownSchemes({SQLITE: "sqlite:FILE", **_POSTGRES, "memory": "memory"}),
    "scheduler": KnownSchemes({"inline": "inline", "procrastinate": "procrastinate"}),
}


class SchemeTarget(NamedTuple):
    """Scheme of a URL, the rest, and the whole. `make` is the factory of a scheme that a package
    adds."""

    scheme: str
    rest: str
    url: str
    make: Callable[[str], Any] | None = None

    def __repr__(self) -> str:
        return f"SchemeTarget({self.scheme!r})"  # the rest may contain a password


def place(setting: str, url: str) -> SchemeTarget:
    """Parse the URL of a setting. Errors do not show the URL, since it may contain a password.

    Raises:
        UsageError: the scheme is unsupported, or the path is empty or malformed.
    """
    known = KNOWN[setting]
    if _PAIRS.match(url):
        raise UsageError(
            f"Setting {setting!r} must be a URL: write `postgresql://USER:PASSWORD@HOST/DATABASE` "
            "instead of `host=… dbname=…`."
        )
    found = _SCHEME.match(url)
    if known.may_be_file and found is None and url != "memory" and "://" not in url:
        return SchemeTarget(SQLITE, _file(setting, url), url)
    scheme = found[1].lower() if found else url if _NAME.fullmatch(url) else ""
    rest = url[found.end() :] if found else ""
    form = known.schemes.get(scheme)
    if form is not None and (":" in form) == (found is not None):
        return SchemeTarget(scheme, _file(setting, rest) if scheme == SQLITE else rest, url)
    make = plugin(setting, scheme) if scheme and form is None else None
    if make is None:
        raise _unknown(setting, known, scheme)
    return SchemeTarget(scheme, rest, url, make)


def check_places(chosen: Settings, given: Collection[str]) -> None:
    """Check the URLs of all settings except those given as objects.

    Raises:
        UsageError: a URL is invalid.
    """
    for setting, known in KNOWN.items():
        url = getattr(chosen, setting)
        if setting not in given and not (known.may_be_empty and not url):
            place(setting, url)
    if chosen.listen_url and "store" not in given:
        _check_listening(chosen)


def _check_listening(chosen: Settings) -> None:
    """Refuse a direct URL of a store that is not in PostgreSQL, or one that is not PostgreSQL's."""
    direct = _SCHEME.match(chosen.listen_url)
    if place("store", chosen.store).scheme not in POSTGRES:
        raise UsageError(
            "Setting 'listen_url' is for a store in PostgreSQL, and this one is not. Remove it, or "
            'set `store = "postgresql://…"`.'
        )
    if direct is None or direct[1].lower() not in POSTGRES:
        raise UsageError("Setting 'listen_url' must be a URL `postgresql://…`.")


def _file(setting: str, name: str) -> str:
    """Path of a SQLite file or folder."""
    if name.startswith("//"):
        raise UsageError(
            f"Setting {setting!r} has slashes after `sqlite:`. Write `sqlite:runs.db` for a "
            "relative path, `sqlite:/var/runs.db` for an absolute one."
        )
    if name == ":memory:":
        raise UsageError(f"Setting {setting!r} cannot be ':memory:'. Write `memory`.")
    if not name:
        raise UsageError(f"Setting {setting!r} has no file name. Write `sqlite:FILE`.")
    return name


def _unknown(setting: str, known: KnownSchemes, scheme: str) -> UsageError:
    forms = dict.fromkeys(known.schemes.values())
    if known.may_be_file:
        forms["a file name (`./a:b` if it has a colon)"] = None
    forms |= dict.fromkeys(f"{name}:… (from a package)" for name in added(setting))
    close = nearest(scheme, (*known.schemes, *added(setting)))
    hint = f" Did you mean {close!r}?" if close else ""
    return UsageError(
        f"Unsupported scheme {scheme!r} for setting {setting!r}.{hint} Supported: "
        f"{', '.join(forms)}."
    )
