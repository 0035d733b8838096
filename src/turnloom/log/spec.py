"""The envelope that every fact travels in."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Something that happened, said by one concept. Subclasses name their `kind`."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1


class Intent(Fact, frozen=True):
    """Something that is about to be done; `request` is the digest of what exactly."""

    request: str


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A fact in its place: which run, where in its sequence, when, by whom, and because of what."""

    id: str
    run: str
    seq: int
    at: datetime
    kind: str
    actor: str
    data: Any
    cause: int | None = None
    v: int = 1
