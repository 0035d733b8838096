"""Guards as users declare them, and what a run keeps for them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, cast

import msgspec
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from turnloom.kernel.durations import seconds
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json


class Pool(NamedTuple):
    """What evidence belongs together: of a tenant, in a workflow, in a category."""

    tenant: str
    workflow: str
    category: str


class Belief(NamedTuple):
    """The evidence on one agent: every outcome adds one, split between the two."""

    successes: float = 0.0
    failures: float = 0.0

    @property
    def observations(self) -> float:
        """How many outcomes this comes from, those that faded counting less."""
        return self.successes + self.failures

    def after(self, credit: float) -> "Belief":
        """The evidence with one more outcome."""
        return Belief(self.successes + credit, self.failures + 1 - credit)

    def faded(self, decay: float) -> "Belief":
        """The evidence without the share that fades."""
        return Belief(self.successes * (1 - decay), self.failures * (1 - decay))


class Observation(NamedTuple):
    """One outcome, known by the event that has it: how much of a success it was, and the share of
    what its pool knew before that fades."""

    run: str
    event: str
    pool: Pool
    agent: str
    credit: float
    decay: float = 0.0


# The price of every model that has none of its own.
ANY_MODEL = "*"


class Price(Declared):
    """What a model costs: so much for a million tokens that it reads, and that it writes."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class RunBudget(Declared):
    """How much one run may use of each resource; what is left out is not limited.

    How many tokens an answer will have is not known before: `answer_tokens` are reserved for it,
    beside those of the frame.
    """

    steps: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    model_calls: int | None = Field(default=None, gt=0)
    tool_calls: int | None = Field(default=None, gt=0)
    wall_time: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    prices: Mapping[str, Price] = {}
    answer_tokens: int = Field(default=1000, ge=0)

    @field_validator("wall_time", mode="before")
    @classmethod
    def _reads_a_duration(cls, given: Any) -> Any:
        return seconds(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.cost is not None and not self.prices:
            raise ValueError(
                "'cost' is limited, and nothing says what a model costs. Add `prices`."
            )
        if self.prices and self.cost is None:
            raise ValueError("'prices' has no effect without a limit. Set `cost`, or drop it.")
        if self.tokens is not None and self.tokens < self.answer_tokens:
            raise ValueError(
                f"'tokens' is {self.tokens}, which has no room for one call: {self.answer_tokens} "
                "are reserved for an answer. Set `answer_tokens` lower, or `tokens` higher."
            )
        return self

    def price(self, model: str | None) -> Price | None:
        """What a model costs, if that is said."""
        return self.prices.get(model or ANY_MODEL, self.prices.get(ANY_MODEL))


class Amounts(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """So much of each resource that is counted call by call."""

    steps: int = 0
    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost: float = 0.0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            self.steps + other.steps,
            self.tokens + other.tokens,
            self.model_calls + other.model_calls,
            self.tool_calls + other.tool_calls,
            cost=self.cost + other.cost,
        )


# Every resource that can be limited, and the one that is measured instead of counted.
WALL_TIME = "wall_time"
RESOURCES = (*Amounts.__struct_fields__, WALL_TIME)


Strategy = Literal[
    "inject_variation", "rotate_agent", "decompose", "synthesise", "escalate", "stop"
]


class Weights(Declared):
    """What each sign of a loop counts in the confidence that there is one; together 1."""

    repetition: float = Field(default=0.4, ge=0, le=1)
    semantic: float = Field(default=0.3, ge=0, le=1)
    no_progress: float = Field(default=0.2, ge=0, le=1)
    frustration: float = Field(default=0.1, ge=0, le=1)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = self.repetition + self.semantic + self.no_progress + self.frustration
        if abs(total - 1) > 0.001:
            raise ValueError(f"The weights add up to {total:g}. Let them add up to 1.")
        return self


class Strategies(Declared):
    """What is done about a loop of each kind."""

    exact_repetition: Strategy = "inject_variation"
    oscillation: Strategy = "synthesise"
    no_progress: Strategy = "decompose"
    semantic_repetition: Strategy = "rotate_agent"
    frustration: Strategy = "decompose"


class LoopDetection(Declared):
    """When turns of a run count as a loop, and what is done about it.

    Without `similarity`, nobody compares what turns said. After `max_resets` recoveries from the
    same loop, `then` is done about it.
    """

    window: int = Field(default=5, ge=2, le=20)
    similarity: float | None = Field(default=0.85, gt=0, le=1)
    threshold: float = Field(default=0.7, gt=0, le=1)
    weights: Weights = Weights()
    strategies: Strategies = Strategies()
    max_resets: int = Field(default=3, ge=0)
    then: Literal["escalate", "stop"] = "escalate"


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


class Guards(Declared):
    """What can stop or steer a run; a guard that is left out does nothing."""

    budget: RunBudget | None = None
    loop_detection: LoopDetection | None = None
    selection: Selection | None = None


NO_GUARDS = Guards()


class TurnDigest(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """A turn as far as loops are concerned: the digest of what was done in it, the beginning of
    what was said, whether anything came of it, and whether something went wrong or a person had to
    be asked."""

    turn: int
    agent: str
    action: str
    output: str = ""
    progress: bool = True
    frustrated: bool = False


class Hint(msgspec.Struct, frozen=True):
    """What an agent is told in its next turn, and why."""

    text: str
    reason: str


class Escalation(msgspec.Struct, frozen=True):
    """What a person is asked about a loop, and whose loop it is."""

    question: str
    prompt: str
    agents: tuple[str, ...]


class Watch(msgspec.Struct):
    """What guards know of a run.

    `held` has what calls that are going on have reserved, by key; `seconds` how long the run went
    on until the instant `at`, without the time in which it waited. Of loops: the last `entries`,
    how often each loop was recovered from, what agents are to be told in their next turn, and are
    told in turns that are open, whose turn it is not to be, and what a person is asked.
    """

    spent: Amounts = Amounts()
    held: dict[str, Amounts] = {}
    seconds: float = 0.0
    at: datetime | None = None
    level: str = "abundant"
    entries: list[TurnDigest] = []
    recoveries: dict[str, int] = {}
    hints: dict[str, Hint] = {}
    told: dict[int, Hint] = {}
    avoided: tuple[str, ...] = ()
    escalation: Escalation | None = None
