"""Read the artifacts that agents publish from their answers, and check them."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from turnloom.agents.logic.outputs.reading import read_output
from turnloom.agents.spec import Answer, MadeArtifact, OutputSchema, Publication
from turnloom.assembly.logic.labels import combine
from turnloom.board.spec import Audience, TypeRegistry
from turnloom.board.spec.artifacts import is_shared, is_visibility, name, names
from turnloom.errors import BoardError, UnknownType, UsageError
from turnloom.kernel.values import Json, as_array, as_object, error_text, preview, writable
from turnloom.reaction.spec import Member, Product

# The keys of an answer with several artifacts.
SEVERAL = "artifacts"
TYPE, PAYLOAD = "type", "payload"


class _Data(BaseModel):
    """Placeholder for a value that an answer gives as data."""


# The publication of an artifact that an answer gives as data only.
NOTHING_SPECIAL = Publication(_Data())

# Calls a function of the user with a value, with a time limit and off the loop.
Ask = Callable[[Callable[[Any], Any], Any], Awaitable[Any]]


class UnpublishableProduct(Exception):
    """An answer has something that cannot be published; the message says why."""


class BoardProducts:
    """The products of one agent; `ask` calls a function of the user with a value."""

    def __init__(self, member: Member, types: TypeRegistry, ask: Ask) -> None:
        self._member = member
        self._types = types
        self._ask = ask
        self.schema = _schema(member.products, types)

    async def read(
        self, answer: Answer, audience: Audience, *, is_last: bool
    ) -> tuple[tuple[MadeArtifact, ...], str]:
        """The artifacts in an answer, and what is wrong with them, if anything."""
        if answer.calls or (not is_last and _is_talk(answer)):
            return (), ""
        try:
            made = [await self._made(audience, *each) for each in self._things(answer)]
            if is_last:
                self._count(made)
        except (UnpublishableProduct, BoardError) as error:
            return (), error_text(error)
        return tuple(made), ""

    def _things(self, answer: Answer) -> Iterator[tuple[str, dict[str, Json], Publication]]:
        """Each artifact to publish: its type, its payload, and its publication."""
        if answer.artifacts:
            for each in answer.artifacts:
                yield *self._written(each), each
        elif answer.output is not None or (answer.text and self._member.products):
            for type, payload in self._data(answer):
                yield type, self._checked(type, payload), NOTHING_SPECIAL

    def _written(self, what: Publication) -> tuple[str, dict[str, Json]]:
        try:
            return self._types.write(what.value)
        except UnknownType as error:
            raise self._unpublished(type(what.value).__name__) from error
        except UsageError as error:
            raise UnpublishableProduct(error_text(error)) from error

    def _checked(self, type: str, payload: Json) -> dict[str, Json]:
        try:
            return self._types.check(type, payload)
        except UnknownType as error:
            raise self._unpublished(type) from error

    def _unpublished(self, type: str) -> UnpublishableProduct:
        known = ", ".join(each.type for each in self._member.products) or "nothing"
        return UnpublishableProduct(f"{self._name} returned a {type!r}, but publishes {known}.")

    def _data(self, answer: Answer) -> list[tuple[str, Json]]:
        """The artifacts that an answer gives as data."""
        if not self._member.products:
            raise UnpublishableProduct(f"{self._name} returned an output, but publishes nothing.")
        try:
            value = answer.output if answer.output is not None else read_output(answer.text)
        except ValueError as error:
            raise UnpublishableProduct(str(error)) from error
        listed = as_array((as_object(value) or {}).get(SEVERAL))
        if listed is None and len(self._member.products) == 1:
            return [(self._member.products[0].type, value)]
        if listed is None:
            raise UnpublishableProduct(f"Expected an object with a list {SEVERAL!r}.")
        return [self._entry(each) for each in listed]

    def _entry(self, value: Json) -> tuple[str, Json]:
        entry = as_object(value) or {}
        type, products = entry.get(TYPE), self._member.products
        if PAYLOAD not in entry or not (isinstance(type, str) or len(products) == 1):
            raise UnpublishableProduct(
                f"Expected an object with {TYPE!r} and {PAYLOAD!r}, got {preview(value)}."
            )
        return (type if isinstance(type, str) else products[0].type), entry[PAYLOAD]

    async def _made(
        self, audience: Audience, type: str, payload: dict[str, Json], what: Publication
    ) -> MadeArtifact:
        type = self._types.resolve(type)
        product = self._member.product(type)
        if product is None:
            raise self._unpublished(type)
        declared = what.tags is None
        tags = product.tags if declared else names(what.tags or (), "Publication.tags")
        if not (what.visibility is None or is_visibility(what.visibility)):
            raise UnpublishableProduct(
                f"Publication.visibility is {what.visibility!r}, which is not a visibility."
            )
        if is_shared(what.visibility):
            raise UnpublishableProduct(
                "Publication.visibility is Shared, but only `board.publish(…)` may share."
            )
        if what.partition is not None:
            name(what.partition, "Publication.partition")
        await self._check(product, type, payload)
        visibility = what.visibility or product.visibility
        if product.inherit:
            visibility = combine((visibility, *audience))
        return MadeArtifact(
            type, payload, tuple(sorted(tags)), visibility, partition=what.partition
        )

    async def _check(self, product: Product, type: str, payload: Json) -> None:
        """Check a value with its `validate` function.

        Raises:
            UnpublishableProduct: the function refuses it, or fails.
        """
        if product.validate is None:
            return
        try:
            verdict = await self._ask(product.validate, self._types.read(type, payload))
        except Exception as error:
            raise UnpublishableProduct(f"A {type!r} was refused: {error_text(error)}") from error
        if verdict is None or verdict is True:
            return
        why = f"`validate` returned {preview(verdict)}, expected True, False or a text"
        if verdict is False:
            why = "`validate` returned False"
        elif isinstance(verdict, str):
            why = writable(verdict)
        raise UnpublishableProduct(f"A {type!r} was refused: {why}.")

    def _count(self, made: Sequence[MadeArtifact]) -> None:
        for product in self._member.products:
            low, high = product.fan_out
            number = sum([each.type == product.type for each in made])
            if number < low or (high is not None and number > high):
                wanted = f"{low}" if low == high else f"{low} to {high or 'any number'}"
                raise UnpublishableProduct(f"Expected {wanted} of {product.type!r}, got {number}.")

    @property
    def _name(self) -> str:
        return f"Agent {self._member.agent.name!r}"


def _is_talk(answer: Answer) -> bool:
    """Whether an answer is plain text and not data."""
    if answer.artifacts or answer.output is not None:
        return False
    try:
        read_output(answer.text)
    except ValueError:
        return True
    return False


def _schema(products: Sequence[Product], types: TypeRegistry) -> OutputSchema | None:
    """The schema of an answer that gives artifacts as data: one artifact if there can be only one,
    else a list."""
    if not products:
        return None
    models = [types.model(each.type) for each in products]
    if len(products) == 1 and products[0].fan_out in ((0, None), (1, 1), (0, 1)):
        return OutputSchema(models[0].__name__, models[0].model_json_schema())
    keys, top = models_json_schema([(each, "validation") for each in models])
    entries = [
        {
            "type": "object",
            "properties": {TYPE: {"const": each.type}, PAYLOAD: keys[model, "validation"]},
            "required": [TYPE, PAYLOAD],
            "additionalProperties": False,
        }
        for each, model in zip(products, models, strict=True)
    ]
    return OutputSchema(SEVERAL, {**_listing(entries, products), "$defs": top.get("$defs", {})})


def _listing(entries: list[dict[str, Any]], products: Iterable[Product]) -> dict[str, Any]:
    several: dict[str, Any] = {"type": "array", "items": {"anyOf": entries}}
    least = sum(each.fan_out[0] for each in products)
    if least:
        several["minItems"] = least
    return {
        "type": "object",
        "properties": {SEVERAL: several},
        "required": [SEVERAL],
        "additionalProperties": False,
    }
