"""URL schemes of settings, and the packages that add to them by entry points."""

import re
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from turnloom.errors import TurnloomError, UsageError
from turnloom.kernel.values import nearest
from turnloom.wiring.doors import DOORS, check_object
from turnloom.wiring.settings import Settings

# The group of entry points whose names a setting takes beside ours.
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
    """The names that packages add to a setting."""
    return sorted(entry_points(group=GROUPS[setting]).names)


def plugin(setting: str, name: str) -> Callable[[str], Any] | None:
    """What makes the object that a name stands for, if a package adds that name.

    Raises:
        UsageError: two packages add it, or it cannot be imported.
    """
    found = {_package(each): each for each in entry_points(group=GROUPS[setting], name=name)}
    if len(found) > 1:
        packages = ", ".join(sorted(found))
        raise UsageError(f"{setting} {name!r} is added by {packages}. Uninstall all but one.")
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
        raise UsageError(f"{what} cannot be imported: {_said(error)}") from error
    if not callable(make):
        raise UsageError(f"{what} is {entry.value!r}, which cannot be called.")

    def made(given: str) -> Any:
        try:
            each: Any = make(given)
        except TurnloomError:
            raise
        except Exception as error:
            raise UsageError(f"{what} cannot be made: {_said(error)}") from error
        check_object(f"What {what} gives", DOORS[setting].port, each)
        return each

    return made


def _said(error: Exception) -> str:
    """What an import says, and of anything else only its type: its text may hold a password."""
    return str(error) if isinstance(error, ImportError) else type(error).__name__


# A text begins with a scheme if two or more of these stand before a colon: `C:` is a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*")

SQLITE = "sqlite"
POSTGRES: tuple[str, ...] = ("postgresql", "postgres")


class KnownSchemes(NamedTuple):
    """What a setting takes: our schemes, each as it is written; and whether it may be empty, or a
    file name."""

    schemes: Mapping[str, str]
    may_be_empty: bool = False
    may_be_file: bool = False


_POSTGRES: dict[str, str] = dict.fromkeys(POSTGRES, "postgresql://…")

KNOWN: dict[str, KnownSchemes] = {
    "store": KnownSchemes({"memory": "memory", SQLITE: "sqlite:FILE"}, may_be_file=True),
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
    "scheduler": KnownSchemes({"inline": "inline"}),
}


class SchemeTarget(NamedTuple):
    """What a setting names: a scheme, what stands behind it, and the whole text. `make` makes it if
    a package adds the scheme."""

    scheme: str
    rest: str
    url: str
    make: Callable[[str], Any] | None = None

    def __repr__(self) -> str:
        return f"Place({self.scheme!r})"  # the rest may hold a password


def place(setting: str, url: str) -> SchemeTarget:
    """What a setting names. The URL is not shown when it is refused: it may hold a password.

    Raises:
        UsageError: there is no such scheme, or nothing stands where a file or folder should.
    """
    known = KNOWN[setting]
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
    """Refuse settings that name nothing; what the program gave as an object is not looked up.

    Raises:
        UsageError: a setting has a scheme that is unknown.
    """
    for setting, known in KNOWN.items():
        url = getattr(chosen, setting)
        if setting not in given and not (known.may_be_empty and not url):
            place(setting, url)


def _file(setting: str, name: str) -> str:
    """A file or folder of SQLite."""
    if name.startswith("//"):
        raise UsageError(
            f"Setting {setting!r} has slashes behind `sqlite:`. Write `sqlite:runs.db` for a "
            "relative path, `sqlite:/var/runs.db` for an absolute one."
        )
    if name == ":memory:":
        raise UsageError(f"Setting {setting!r} cannot be ':memory:'. Write `memory`.")
    if not name:
        raise UsageError(f"Setting {setting!r} names no file. Write `sqlite:FILE`.")
    return name


def _unknown(setting: str, known: KnownSchemes, scheme: str) -> UsageError:
    forms = dict.fromkeys(known.schemes.values())
    if known.may_be_file:
        forms["a file name (`./a:b` if it has a colon)"] = None
    forms |= dict.fromkeys(f"{name}:… (of a package)" for name in added(setting))
    close = nearest(scheme, (*known.schemes, *added(setting)))
    hint = f" Did you mean {close!r}?" if close else ""
    return UsageError(
        f"Setting {setting!r} does not know the scheme {scheme!r}.{hint} It takes: "
        f"{', '.join(forms)}."
    )
