"""Where a reader was when a page ended.

A cursor names the last artifact that was given, not its number: numbers would tell how much there
is that the reader may not see.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

import msgspec

from turnloom.board.spec import FilterConfig
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder[tuple[str, str]](tuple[str, str]).decode


def write_cursor(filter: FilterConfig, id: str) -> str:
    """The cursor that stands behind an artifact in what a filter asks for."""
    return urlsafe_b64encode(_encode((id, _question(filter)))).decode()


def read_cursor(filter: FilterConfig, cursor: str) -> str:
    """The artifact that a cursor stands behind.

    Raises:
        UsageError: it is none, or belongs to another filter.
    """
    try:
        id, question = _decode(urlsafe_b64decode(cursor.encode()))
    except (Error, ValueError) as error:
        raise UsageError(
            f"{cursor!r} is no cursor. Give back the one of the page before, as it was."
        ) from error
    if question != _question(filter):
        raise UsageError(
            "The cursor belongs to another filter. Only the limit may differ from page to page; "
            "begin again without a cursor."
        )
    return id


def _question(filter: FilterConfig) -> str:
    return digest(_encode(filter.model_dump(exclude={"limit"})).decode())
