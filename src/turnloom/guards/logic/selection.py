"""Thompson sampling among candidates, with draws that are the same on every machine."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from hashlib import blake2b
from math import sqrt
from typing import Any, NamedTuple

from turnloom.agents.events import AgentOutput, AgentText, ModelAnswered
from turnloom.errors import NoCandidates
from turnloom.guards.events import Candidate, SelectionJudged, SelectionMade
from turnloom.guards.spec import Belief, Observation, Pool, Selection
from turnloom.kernel.values import Json, as_array, as_object, canonical, preview, writable
from turnloom.log.spec import Event, Fact
from turnloom.variables.logic.types import is_json

_EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)

# The hexadecimal digits of a digest that make a number: 52 bits, so that a half can be added.
_DIGITS = 13
_RANGE = 16**_DIGITS


class UniformDraws:
    """Uniform numbers between 0 and 1, both excluded, derived from names."""

    def __init__(self, *names: str) -> None:
        self._name = _mix("".join([f"{len(name)}:{name}" for name in names]))
        self._count = 0

    def next(self) -> float:
        """The next number."""
        self._count += 1
        drawn = _mix(f"{self._name}/{self._count}")[:_DIGITS]
        return (int(drawn, 16) + 0.5) / _RANGE


def _mix(text: str) -> str:
    """Hexadecimal digits derived from a text; a change would change every seeded draw."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def draw_beta(alpha: float, beta: float, stream: UniformDraws) -> float:
    """A draw from a Beta distribution; 0.5 if both gamma draws underflow."""
    one, other = _gamma(alpha, stream), _gamma(beta, stream)
    total = one + other
    return one / total if total > 0 else 0.5


def _gamma(shape: float, stream: UniformDraws) -> float:
    """A draw from a Gamma distribution, by the method of Marsaglia and Tsang."""
    if shape < 1:
        return _gamma(shape + 1, stream) * _exp(_ln(stream.next()) / shape)
    d = shape - 1 / 3
    c = 1 / sqrt(9 * d)
    while True:
        x = _normal(stream)
        v = 1 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = stream.next()
        if u < 1 - 0.0331 * x * x * x * x or _ln(u) < x * x / 2 + d * (1 - v + _ln(v)):
            return d * v


def _normal(stream: UniformDraws) -> float:
    """A draw from the normal distribution, by the polar method."""
    while True:
        a, b = 2 * stream.next() - 1, 2 * stream.next() - 1
        s = a * a + b * b
        if 0 < s < 1:
            return a * sqrt(-2 * _ln(s) / s)


def _ln(value: float) -> float:
    return float(_EXACT.ln(Decimal(value)))


def _exp(value: float) -> float:
    return float(_EXACT.exp(Decimal(value)))


# The number of outcomes for full confidence.
ENOUGH = 20

UNKNOWN = Belief()


class SelectionRequest(NamedTuple):
    """A choice to make: its category, the candidates, and the agent that the turn was meant for or
    the artifact that woke them."""

    category: str
    among: Sequence[str]
    excluded: Sequence[str] = ()
    meant: str = ""
    artifact: str = ""
    notes: tuple[str, ...] = ()


def select(
    selection: Selection, asked: SelectionRequest, beliefs: Mapping[str, Belief], chance: str
) -> SelectionMade:
    """Make the choice, which depends on the arguments only.

    Raises:
        NoCandidates: every candidate is excluded.
    """
    excluded = tuple(name for name in asked.among if name in asked.excluded)
    left = [name for name in asked.among if name not in excluded]
    if not left:
        raise NoCandidates(
            f"No candidate is left for a turn in category {asked.category!r}: all of "
            f"{', '.join(excluded)} are excluded. Keep at least one."
        )
    drawn = [
        _drawn(selection, asked, name, beliefs.get(name, UNKNOWN), chance=chance) for name in left
    ]
    chosen = max(drawn, key=lambda each: each.score)  # of equals, the one declared first
    return SelectionMade(
        chosen.agent,
        asked.category,
        tuple(drawn),
        excluded,
        confidence=confidence(beliefs.get(chosen.agent, UNKNOWN)),
        chance=chance,
        meant=asked.meant,
        artifact=asked.artifact,
        notes=asked.notes,
    )


def outcomes(asked: SelectionRequest, beliefs: Mapping[str, Belief]) -> str:
    """The number of known outcomes of the candidates, as text for a seed."""
    return f"{sum(beliefs.get(name, UNKNOWN).observations for name in asked.among):.17g}"


def confidence(belief: Belief) -> float:
    """How well an agent is known: grows with its outcomes, up to 1."""
    return min(1.0, belief.observations / ENOUGH)


def _drawn(
    selection: Selection, asked: SelectionRequest, agent: str, belief: Belief, chance: str
) -> Candidate:
    alpha, beta = selection.prior[0] + belief.successes, selection.prior[1] + belief.failures
    draw = draw_beta(alpha, beta, UniformDraws(chance, asked.category, agent))
    return Candidate(agent, alpha, beta, draw, cost=selection.costs.get(agent, 0.0))


def category_of(value: Json) -> str:
    """A value as a category: a string as it is, other JSON as text; empty if it is neither."""
    if isinstance(value, str):
        return writable(value)
    return "" if value is None or not is_json(value) else canonical(value)


def names_in(value: Json) -> Sequence[str]:
    """The names in a variable's value: a list of names, or one name."""
    return [value] if isinstance(value, str) else [str(each) for each in as_array(value) or ()]


def answer_of(facts: Sequence[Fact]) -> Json:
    """The answer of an agent's last call: its output, or a list of several; or its text."""
    outputs = [fact.output for fact in facts if isinstance(fact, AgentOutput)]
    if outputs:
        return outputs[0] if len(outputs) == 1 else outputs
    text = "".join(fact.text for fact in facts if isinstance(fact, AgentText))
    return text or "".join(fact.raw for fact in facts if isinstance(fact, ModelAnswered))


def credit_of(answer: Json) -> float:
    """The credit of an accepted answer: the `confidence` in it, or else 1."""
    stated: Json = (as_object(answer) or {}).get("confidence")
    return float(stated) if _is_share(stated) else 1.0


def read_credit(given: Any) -> float:
    """The credit that a `score` function returned.

    Raises:
        ValueError: it is not a number from 0 to 1.
    """
    if isinstance(given, bool) or _is_share(given):
        return float(given)
    raise ValueError(f"A score must be a number from 0 to 1, not {preview(given)}.")


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1


def observations(tenant: str, events: Sequence[Event]) -> list[Observation]:
    """The outcomes of selections in a tenant's events."""
    return [
        _observation(tenant, event, event.data)
        for event in events
        if event.kind == SelectionJudged.kind
    ]


def _observation(tenant: str, event: Event, fact: SelectionJudged) -> Observation:
    pool = Pool(tenant, fact.workflow, fact.category)
    return Observation(event.run, event.id, pool, fact.agent, credit=fact.credit, decay=fact.decay)
