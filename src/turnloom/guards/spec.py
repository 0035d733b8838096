"""Guards as users declare them, and their state in a run."""

import re
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

from turnloom.agents.spec import Usage
from turnloom.kernel.durations import seconds
from turnloom.kernel.models import Declared
from turnloom.kernel.values import Json


class Pool(NamedTuple):
    """The scope of evidence: a tenant, a workflow and a category."""

    tenant: str
    workflow: str
    category: str


class Belief(NamedTuple):
    """The evidence on one agent: every outcome adds 1, split between success and failure."""

    successes: float = 0.0
    failures: float = 0.0

    @property
    def observations(self) -> float:
        """The number of outcomes, those that faded counting less."""
        return self.successes + self.failures

    def after(self, credit: float) -> "Belief":
        """The evidence with one more outcome."""
        return Belief(self.successes + credit, self.failures + 1 - credit)

    def faded(self, decay: float) -> "Belief":
        """The evidence without the share that fades."""
        return Belief(self.successes * (1 - decay), self.failures * (1 - decay))


class Observation(NamedTuple):
    """One outcome, identified by its event: its credit, and the share of the pool's earlier
    evidence that fades."""

    run: str
    event: str
    pool: Pool
    agent: str
    credit: float
    decay: float = 0.0


# The key of the price for every other model.
ANY_MODEL = "*"

MILLION = 1_000_000
# The date at the end of a model's name.
_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


class Price(Declared):
    """Price of a model, for a million input tokens and a million output tokens.

    Input tokens that the provider reads from its prompt cache or writes to it cost `cached` and
    `cache_write`; without these, they cost what others do.
    """

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def cost(self, usage: Usage) -> float:
        """The cost of the tokens that a call used."""
        read, written = usage.cached_tokens, usage.cache_write_tokens
        cached = self.input if self.cached is None else self.cached
        write = self.input if self.cache_write is None else self.cache_write
        fresh = max(usage.input_tokens - read - written, 0)
        entered = fresh * self.input + read * cached + written * write
        return (entered + usage.output_tokens * self.output) / MILLION


NO_PRICES: Mapping[str, Price] = {}


def find_price(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """The price of a model: by its name, by its name without a provider (`openai:gpt-4o`) or a date
    (`gpt-4o-2024-08-06`), or that of any model."""
    name = model or ANY_MODEL
    bare = re.split("[:/]", name)[-1]
    names = (name, bare, _DATE.sub("", name), _DATE.sub("", bare), ANY_MODEL)
    return next((prices[each] for each in names if each in prices), None)


class RunBudget(Declared):
    """Limits of one run for each resource; a resource left out is not limited.

    The length of an answer is not known in advance: `answer_tokens` are reserved for it, in
    addition to the tokens of the frame.
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
            raise ValueError("'cost' is limited, but no model has a price. Add `prices`.")
        if self.prices and self.cost is None:
            raise ValueError("'prices' has no effect without `cost`. Set it, or remove `prices`.")
        if self.tokens is not None and self.tokens < self.answer_tokens:
            raise ValueError(
                f"'tokens' is {self.tokens}, too few for one call: {self.answer_tokens} are "
                "reserved for an answer. Lower `answer_tokens`, or raise `tokens`."
            )
        return self

    def price(self, model: str | None) -> Price | None:
        """The price of a model, if declared."""
        return find_price(self.prices, model)


class Amounts(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """Amounts of the resources that are counted call by call."""

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


# Every resource that can be limited; time is measured, the others are counted.
WALL_TIME = "wall_time"
RESOURCES = (*Amounts.__struct_fields__, WALL_TIME)


Strategy = Literal[
    "inject_variation", "rotate_agent", "decompose", "synthesise", "escalate", "stop"
]


class Weights(Declared):
    """Weight of each sign of a loop in the confidence; together 1."""

    repetition: float = Field(default=0.4, ge=0, le=1)
    semantic: float = Field(default=0.3, ge=0, le=1)
    no_progress: float = Field(default=0.2, ge=0, le=1)
    frustration: float = Field(default=0.1, ge=0, le=1)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = self.repetition + self.semantic + self.no_progress + self.frustration
        if abs(total - 1) > 0.001:
            raise ValueError(f"The weights add up to {total:g}. Make them add up to 1.")
        return self


class Strategies(Declared):
    """Strategy against each kind of loop."""

    exact_repetition: Strategy = "inject_variation"
    oscillation: Strategy = "synthesise"
    no_progress: Strategy = "decompose"
    semantic_repetition: Strategy = "rotate_agent"
    frustration: Strategy = "decompose"


class LoopDetection(Declared):
    """When turns count as a loop, and what to do about it.

    Without `similarity`, the texts of turns are not compared. After `max_resets` recoveries from
    the same loop, `then` applies.
    """

    window: int = Field(default=5, ge=2, le=20)
    similarity: float | None = Field(default=0.85, gt=0, le=1)
    threshold: float = Field(default=0.7, gt=0, le=1)
    weights: Weights = Weights()
    strategies: Strategies = Strategies()
    max_resets: int = Field(default=3, ge=0)
    then: Literal["escalate", "stop"] = "escalate"


# The category of a selection that declares none, or whose category is unknown.
GENERAL = "general"

# A function; in a folder, the name of one in its `guards.py`.
Function = Annotated[Callable[..., object] | str, WithJsonSchema({"type": "string"})]

Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
From0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Category(Declared):
    """Category of a turn: a constant, a variable's value, or a function's result."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    constant: str | None = Field(default=None, min_length=1)
    variable: str | None = Field(default=None, min_length=1)
    function: Function | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Category":
        if len(self.model_fields_set) != 1:
            raise ValueError(
                "A category takes exactly one of a text, `variable` and `function`. Keep one."
            )
        return self


def _category(given: Json) -> Json:
    """Expand the short forms of a category: a text, or a function."""
    if isinstance(given, str):
        return {"constant": given}
    return {"function": given} if callable(given) else given


# The accepted values for a category, converted to `Category`.
if TYPE_CHECKING:
    CategoryInput = Category | str | Callable[..., Any]
else:
    CategoryInput = Annotated[Category, BeforeValidator(_category)]


class Selection(Declared):
    """Chooses one of the candidates for each turn that would go to one of them, by Thompson
    sampling.

    The belief about a candidate is a Beta distribution over its success, from the `prior` and the
    outcomes of its turns in the `category`; the candidate with the highest draw, less its cost, is
    chosen. `decay` is the share of the evidence that fades with each further outcome; `score`
    rates an accepted answer from 0 to 1; candidates in `exclude`, or in the list in
    `exclude_variable`, are never chosen.
    """

    candidates: tuple[str, ...] = Field(strict=False, min_length=2)
    category: CategoryInput = Field(default_factory=lambda: Category(constant=GENERAL))
    seed: int | None = None
    prior: tuple[Above0, Above0] = Field(default=(2.0, 2.0), strict=False)
    decay: float = Field(default=0.0, ge=0, lt=1)
    costs: dict[str, From0] = Field(default_factory=dict[str, float])
    exclude: tuple[str, ...] = Field(default=(), strict=False)
    exclude_variable: str | None = Field(default=None, min_length=1)
    score: Function | None = None

    @property
    def about(self) -> Category:
        """The category, converted."""
        return cast(Category, self.category)

    @model_validator(mode="after")
    def _is_about_its_candidates(self) -> "Selection":
        known = set(self.candidates)
        if len(known) < len(self.candidates):
            raise ValueError("A candidate is listed twice. Remove one.")
        for key, names in (("costs", self.costs), ("exclude", self.exclude)):
            if strangers := sorted({*names} - known):
                raise ValueError(
                    f"`{key}` names {strangers[0]!r}, which is not a candidate. "
                    f"Use one of {', '.join(self.candidates)}."
                )
        if known <= {*self.exclude}:
            raise ValueError("Every candidate is excluded. Keep at least one.")
        return self


class Guards(Declared):
    """The guards of a run, which can stop or steer it; a guard left out does nothing."""

    budget: RunBudget | None = None
    loop_detection: LoopDetection | None = None
    selection: Selection | None = None


NO_GUARDS = Guards()


class TurnDigest(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """A turn as loop detection sees it: the digest of its action, the start of its text, whether it
    made progress, and whether something failed or a person had to be asked."""

    turn: int
    agent: str
    action: str
    output: str = ""
    progress: bool = True
    frustrated: bool = False


class Hint(msgspec.Struct, frozen=True):
    """A hint for an agent's next turn, and its reason."""

    text: str
    reason: str


class Escalation(msgspec.Struct, frozen=True):
    """A question to a person about a loop, and the agents in the loop."""

    question: str
    prompt: str
    agents: tuple[str, ...]


class Watch(msgspec.Struct):
    """State of a run's guards.

    `held` has the amounts that open calls have reserved, by key; `seconds` is the running time
    until the instant `at`, without waiting. For loops: the last `entries`, the number of
    `recoveries` from each loop, the pending `hints` by agent and those `told` in open turns, the
    agents to be `avoided`, and the open question to a person.
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
