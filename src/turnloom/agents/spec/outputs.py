"""Declared outputs: what a value may be, and the models that agents answer with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from turnloom.kernel.values import Json


class ValueType(msgspec.Struct, frozen=True, kw_only=True):
    """What a value may be."""

    description: str = ""


class Plain(ValueType, frozen=True):
    """A `string`, `integer`, `number`, `boolean` or `null`, or `any` value."""

    type: str


class OneOf(ValueType, frozen=True):
    """One of a closed set of words or numbers."""

    words: tuple[Json, ...]


class ArrayOf(ValueType, frozen=True):
    """An array whose entries all are of one form."""

    item: ValueType


class MapOf(ValueType, frozen=True):
    """An object with any keys, whose values all are of one form."""

    value: ValueType


class Either(ValueType, frozen=True):
    """One form or another."""

    variants: tuple[ValueType, ...]


class Reference(ValueType, frozen=True):
    """What the model of that name is."""

    model: str


class Key(msgspec.Struct, frozen=True):
    """A key of an object: its form, whether it must be there, and its value when it is not."""

    form: ValueType
    required: bool = True
    default: Json = None


class ObjectType(ValueType, frozen=True):
    """An object with these keys and no others."""

    keys: Mapping[str, Key]


class Validated(NamedTuple):
    """A value as its model has it, or nothing and what is wrong with it: a line for each fault."""

    value: Json
    problem: str | None = None


class OutputModel(Protocol):
    """What a value must be: for people, for providers, and for the check of an answer."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def schema(self) -> dict[str, Json]:
        """Its JSON Schema (2020-12), which refers to nothing outside of itself."""
        ...

    def validate(self, value: Json) -> Validated:
        """The value with defaults filled in, or what is wrong with it."""
        ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """The models of a workflow by name, and the model that each agent answers with.

    `complete` is false when a model without a name may be the one that somebody names.
    """

    models: Mapping[str, OutputModel] = field(default_factory=dict[str, OutputModel])
    registry: Mapping[str, str] = field(default_factory=dict[str, str])
    complete: bool = True
