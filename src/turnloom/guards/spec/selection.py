"""Who of several agents gets a turn, as a user declares it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json

# What a selection is about that says nothing of categories, or whose category cannot be told.
GENERAL = "general"

# A function of the program; in a folder, the name of one in its `guards.py`.
Function = Annotated[Callable[..., object] | str, WithJsonSchema({"type": "string"})]

Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
From0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Category(Declared):
    """What a turn is about: always the same, what a variable holds, or what a function says."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    constant: str | None = Field(default=None, min_length=1)
    variable: str | None = Field(default=None, min_length=1)
    function: Function | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Category":
        if len(self.model_fields_set) != 1:
            raise ValueError("A category is said once. Write a text, `variable` or `function`.")
        return self


def _category(given: Json) -> Json:
    """A category in its short forms: a text that is it, or a function that says it."""
    if isinstance(given, str):
        return {"constant": given}
    return {"function": given} if callable(given) else given


# What may be given for a category; it is read into one.
if TYPE_CHECKING:
    Said = Category | str | Callable[..., Any]
else:
    Said = Annotated[Category, BeforeValidator(_category)]


class Selection(Declared):
    """Of the candidates one gets each turn that would go to one of them: by Thompson sampling.

    What is known of a candidate is a Beta distribution over its success, from the `prior` and from
    how its turns in the `category` ended; the candidate with the highest draw, less its cost, is
    chosen. `decay` is the share of what is known that fades with each further outcome; a `score`
    says from an accepted answer how much of a success it is; who is in `exclude`, or in the list
    that `exclude_variable` holds, is never chosen.
    """

    candidates: tuple[str, ...] = Field(strict=False, min_length=2)
    category: Said = Field(default_factory=lambda: Category(constant=GENERAL))
    seed: int | None = None
    prior: tuple[Above0, Above0] = Field(default=(2.0, 2.0), strict=False)
    decay: float = Field(default=0.0, ge=0, lt=1)
    costs: dict[str, From0] = Field(default_factory=dict[str, float])
    exclude: tuple[str, ...] = Field(default=(), strict=False)
    exclude_variable: str | None = Field(default=None, min_length=1)
    score: Function | None = None

    @property
    def about(self) -> Category:
        """The category, as it was read."""
        return cast(Category, self.category)

    @model_validator(mode="after")
    def _is_about_its_candidates(self) -> "Selection":
        known = set(self.candidates)
        if len(known) < len(self.candidates):
            raise ValueError("A candidate is named twice. Keep one of the two.")
        for key, names in (("costs", self.costs), ("exclude", self.exclude)):
            if strangers := sorted({*names} - known):
                raise ValueError(
                    f"`{key}` names {strangers[0]!r}, which is no candidate. "
                    f"Use one of {', '.join(self.candidates)}."
                )
        if known <= {*self.exclude}:
            raise ValueError("Every candidate is excluded. Keep one that can be chosen.")
        return self
