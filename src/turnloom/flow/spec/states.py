"""What steps change in the state of a flow."""

from collections.abc import Mapping
from typing import Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

S_co = TypeVar("S_co", bound=BaseModel, default=BaseModel, covariant=True)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def append(current: list[T], given: list[T]) -> list[T]:
    """The reducer of lists: what is given comes after what is there."""
    return [*current, *given]


def merge(current: Mapping[K, V], given: Mapping[K, V]) -> dict[K, V]:
    """The reducer of mappings: what is given counts where both have a key."""
    return {**current, **given}


class Update(Generic[S_co]):
    """What a step changes, field by field, and how sure it is of that, from 0 to 1.

    `Update(total=3)` and `Update({"total": 3}, confidence=0.8)` change the field `total`.
    """

    __slots__ = ("changes", "confidence")

    def __init__(
        self,
        changes: Mapping[str, object] | None = None,
        /,
        *,
        confidence: float | None = None,
        **fields: object,
    ) -> None:
        self.changes: dict[str, object] = {**(changes or {}), **fields}
        self.confidence = confidence

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f", confidence={self.confidence:g}"
        return f"Update({self.changes!r}{sure})"
