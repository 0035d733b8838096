"""Where a reader was when a page ended.

A cursor names the last artifact that was given, and which of those of that id it is: tenants may
share artifacts of one id. Its number in the store would tell how much there is that the reader may
not see.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

import msgspec

from turnloom.board.spec import FilterConfig, Reader
from turnloom.errors import UsageError
from turnloom.kernel.digests import chain

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder[tuple[str, int, str]](tuple[str, int, str]).decode


def write_cursor(filter: FilterConfig, reader: Reader, id: str, which: int) -> str:
    """The cursor that stands behind an artifact in what a filter finds for a reader."""
    return urlsafe_b64encode(_encode((id, which, _question(filter, reader)))).decode()


def read_cursor(filter: FilterConfig, reader: Reader, cursor: str) -> tuple[str, int]:
    """The artifact that a cursor stands behind, and which of those of that id it is.

    Raises:
        UsageError: it is none, or belongs to another filter or reader.
    """
    try:
        id, which, question = _decode(urlsafe_b64decode(cursor.encode()))
    except (Error, ValueError) as error:
        raise UsageError(
            f"{cursor!r} is no cursor. Give back the one of the page before, as it was."
        ) from error
    if question != _question(filter, reader):
        raise UsageError(
            "The cursor belongs to another filter or reader. Only the limit may differ from page "
            "to page; begin again without a cursor."
        )
    return id, which


def _question(filter: FilterConfig, reader: Reader) -> str:
    asked = _encode(filter.model_dump(exclude={"limit"})).decode()
    return chain(asked, reader.agent, reader.tenant, reader.role, *sorted(reader.labels))
