"""What every value on a board is made of: instants, names, and sets of names."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from turnloom.errors import InvalidArtifact
from turnloom.kernel.values import is_name, preview


class Names(frozenset[str]):
    """A set of names that comes in the order of its names, so that what is written of it is the
    same in every process."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))


NONE = Names()


def instant(value: object, what: str) -> datetime:
    """The instant that a time names, in UTC.

    Raises:
        InvalidArtifact: it is no time, or does not say of which zone it is.
    """
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidArtifact(
            f"{what} is {preview(value)}, which names no instant. "
            "Give a datetime with a zone, as in datetime(2026, 1, 31, tzinfo=UTC)."
        )
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArtifact(f"{what} is {value!r}, which no calendar holds in UTC.") from None


def name(value: str, what: str) -> str:
    """A text that can name something.

    Raises:
        InvalidArtifact: it cannot.
    """
    if not is_name(value):
        raise InvalidArtifact(
            f"{what} is {preview(value)}. It must be a text that is not empty and holds no NUL and "
            "no half character."
        )
    return value


def names(values: Any, what: str) -> Names:
    """A set of names; one text is not taken for a set of letters.

    Raises:
        InvalidArtifact: it is no set, or something in it is no name.
    """
    if type(values) is Names:
        return values  # they were seen to be names when they were made
    if type(values) is frozenset and not values:
        return NONE
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidArtifact(f"{what} is {preview(values)}. Give a set, as in {{'name'}}.")
    return Names(name(value, f"One of {what}") for value in cast(Iterable[str], values))
