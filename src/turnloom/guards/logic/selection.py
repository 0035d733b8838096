"""Who of several candidates is chosen, and what an outcome says of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnloom.agents.events import AgentOutput, AgentText, ModelAnswered
from turnloom.errors import NoCandidates
from turnloom.guards.events import Candidate, SelectionJudged, SelectionMade
from turnloom.guards.logic.drawing import Stream, draw_beta
from turnloom.guards.spec import Belief, Observation, Pool, Selection
from turnloom.kernel.values import Json, as_array, as_object, canonical, preview, writable
from turnloom.log.spec import Event, Fact
from turnloom.variables.logic.types import is_json

# How many outcomes are enough to be sure of an agent.
ENOUGH = 20

UNKNOWN = Belief()


class Asked(NamedTuple):
    """One choice to be made: in which category, among whom, and for whom it was meant or what woke
    them."""

    category: str
    among: Sequence[str]
    excluded: Sequence[str] = ()
    meant: str = ""
    artifact: str = ""
    notes: tuple[str, ...] = ()


def select(
    selection: Selection, asked: Asked, beliefs: Mapping[str, Belief], chance: str
) -> SelectionMade:
    """The choice, which follows from what is given and from nothing else.

    Raises:
        NoCandidates: everybody is excluded.
    """
    excluded = tuple(name for name in asked.among if name in asked.excluded)
    left = [name for name in asked.among if name not in excluded]
    if not left:
        raise NoCandidates(
            f"Nobody is left for a turn in category {asked.category!r}: excluded are "
            f"{', '.join(excluded)}. Keep one that can be chosen."
        )
    drawn = [_drawn(selection, asked, name, beliefs.get(name, UNKNOWN), chance) for name in left]
    chosen = max(drawn, key=lambda each: each.score)  # of equals, the one declared first
    return SelectionMade(
        chosen.agent,
        asked.category,
        tuple(drawn),
        excluded,
        confidence(beliefs.get(chosen.agent, UNKNOWN)),
        chance,
        asked.meant,
        asked.artifact,
        asked.notes,
    )


def outcomes(asked: Asked, beliefs: Mapping[str, Belief]) -> str:
    """How many outcomes of those among whom one is chosen are known."""
    return f"{sum(beliefs.get(name, UNKNOWN).observations for name in asked.among):.17g}"


def confidence(belief: Belief) -> float:
    """How much is known of an agent: it grows with what was observed, up to 1."""
    return min(1.0, belief.observations / ENOUGH)


def _drawn(
    selection: Selection, asked: Asked, agent: str, belief: Belief, chance: str
) -> Candidate:
    alpha, beta = selection.prior[0] + belief.successes, selection.prior[1] + belief.failures
    draw = draw_beta(alpha, beta, Stream(chance, asked.category, agent))
    return Candidate(agent, alpha, beta, draw, selection.costs.get(agent, 0.0))


def category_of(value: Json) -> str:
    """A value as a category: a text as it is, anything else as data; empty if it is neither."""
    if isinstance(value, str):
        return writable(value)
    return "" if value is None or not is_json(value) else canonical(value)


def names_in(value: Json) -> Sequence[str]:
    """The names that a variable holds: a list of them, or one."""
    return [value] if isinstance(value, str) else [str(each) for each in as_array(value) or ()]


def answer_of(facts: Sequence[Fact]) -> Json:
    """What an agent answered in its last call: its output, or all if it gave several; or its
    words."""
    outputs = [fact.output for fact in facts if isinstance(fact, AgentOutput)]
    if outputs:
        return outputs[0] if len(outputs) == 1 else outputs
    said = "".join(fact.text for fact in facts if isinstance(fact, AgentText))
    return said or "".join(fact.raw for fact in facts if isinstance(fact, ModelAnswered))


def credit_of(answer: Json) -> float:
    """How much of a success an accepted answer is: the `confidence` it states, or else all."""
    stated: Json = (as_object(answer) or {}).get("confidence")
    return float(stated) if _is_share(stated) else 1.0


def read_credit(given: Any) -> float:
    """What a function says of an answer, as a credit.

    Raises:
        ValueError: it is none.
    """
    if isinstance(given, bool) or _is_share(given):
        return float(given)
    raise ValueError(f"A score is a number from 0 to 1, not {preview(given)}.")


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1


def observations(tenant: str, events: Sequence[Event]) -> list[Observation]:
    """What events of a tenant say of how the turns of chosen agents turned out."""
    return [
        _observation(tenant, event, event.data)
        for event in events
        if event.kind == SelectionJudged.kind
    ]


def _observation(tenant: str, event: Event, fact: SelectionJudged) -> Observation:
    pool = Pool(tenant, fact.workflow, fact.category)
    return Observation(event.run, event.id, pool, fact.agent, fact.credit, fact.decay)
