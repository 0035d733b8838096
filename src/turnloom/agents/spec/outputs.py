"""Declared outputs: value types, and the models of agents' answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from turnloom.kernel.values import Json


class ValueType(msgspec.Struct, frozen=True, kw_only=True):
    """The type of a value."""

    description: str = ""


class Plain(ValueType, frozen=True):
    """A `string`, `integer`, `number`, `boolean` or `null`, or `any` value."""

    type: str


class OneOf(ValueType, frozen=True):
    """An enum: one of a fixed set of strings or numbers."""

    words: tuple[Json, ...]


class ArrayOf(ValueType, frozen=True):
    """An array with items of one type."""

    item: ValueType


class MapOf(ValueType, frozen=True):
    """An object with arbitrary keys and values of one type."""

    value: ValueType


class Either(ValueType, frozen=True):
    """A union of types."""

    variants: tuple[ValueType, ...]


class Reference(ValueType, frozen=True):
    """A reference to a model by name."""

    model: str


class Key(msgspec.Struct, frozen=True):
    """A key of an object: its type, whether it is required, and its default."""

    form: ValueType
    required: bool = True
    default: Json = None


class ObjectType(ValueType, frozen=True):
    """An object with exactly these keys."""

    keys: Mapping[str, Key]


class Validated(NamedTuple):
    """A validated value, or the problem: one line per fault."""

    value: Json
    problem: str | None = None


class OutputModel(Protocol):
    """A named schema for an agent's output, with its validator."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def schema(self) -> dict[str, Json]:
        """Its self-contained JSON Schema (2020-12)."""
        ...

    def validate(self, value: Json) -> Validated:
        """The value with defaults filled in, or the problem."""
        ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """The models of a workflow by name, and the model of each agent.

    `complete` is false if a model without a name may be one that is referred to elsewhere.
    """

    models: Mapping[str, OutputModel] = field(default_factory=dict[str, OutputModel])
    registry: Mapping[str, str] = field(default_factory=dict[str, str])
    complete: bool = True
