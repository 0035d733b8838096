"""What a page tells of a run: the explanations of everything in it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.conversation.events import RouteDecided
from turnloom.explain.logic.artifacts import ArtifactHistory
from turnloom.explain.logic.flow_routes import ROUTES
from turnloom.explain.logic.route import explain_any_route
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.logic.turn import explain_turns
from turnloom.explain.logic.variable import explain_variable, names_of
from turnloom.explain.spec.board import OfferExplained
from turnloom.explain.spec.explanations import RouteExplanation, RunDeclarations
from turnloom.explain.spec.state import StateExplained
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.variable import VariableExplained
from turnloom.guards.spec import Price
from turnloom.kernel.values import Json
from turnloom.log.events import RunStarted
from turnloom.log.logic import standing, started_of
from turnloom.log.spec import Event
from turnloom.reaction.events import ArtifactReceived

# Facts whose route `explain` explains, in any form.
_ROUTED = (RouteDecided, ArtifactPublished, ArtifactReceived, ArtifactConsumed, *ROUTES)


class PageContents(NamedTuple):
    """The explanations of a run: the same that are given one at a time.

    `routes` are by the event that they explain. `plan` is that of a flow, as its runs are pinned to
    it; empty if there is none.
    """

    started: RunStarted
    events: Sequence[Event]
    timeline: Timeline
    state: StateExplained
    turns: Sequence[TurnExplained]
    routes: Mapping[int, RouteExplanation]
    variables: Sequence[VariableExplained]
    artifacts: Sequence[Artifact]
    plan: Mapping[str, Json]

    @property
    def offers(self) -> Iterator[tuple[int, OfferExplained]]:
        """The verdicts on artifacts, by event."""
        for seq, route in self.routes.items():
            if isinstance(route, OfferExplained):
                yield seq, route


def explain_run(
    events: Sequence[Event],
    declared: RunDeclarations,
    state: StateExplained,
    prices: Mapping[str, Price],
) -> PageContents:
    """Explain everything in a run. `state` is that at its end."""
    counted = standing(events)
    return PageContents(
        started_of(events),
        events,
        timeline(events, prices),
        state,
        turns=[*explain_turns(counted)],
        routes={seq: explain_any_route(counted, seq, declared) for seq in _routed(counted)},
        variables=[
            explain_variable(events, name, None, declared)
            for name in dict.fromkeys(names_of(counted))
        ],
        artifacts=ArtifactHistory(counted).all,
        plan=json.loads(declared.plan) if declared.plan else {},
    )


def _routed(events: Sequence[Event]) -> Iterator[int]:
    return (event.seq for event in events if isinstance(event.data, _ROUTED))
