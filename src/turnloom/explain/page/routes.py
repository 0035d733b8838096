"""Routes on a page: rules, subscriptions or decisions that were considered."""

from collections.abc import Mapping, Sequence

from turnloom.explain.page.markup import (
    Content,
    Html,
    element,
    folded,
    lines,
    link,
    seq_link,
    table,
)
from turnloom.explain.spec.board import ARRIVED, ConsumptionExplained, OfferExplained
from turnloom.explain.spec.explanations import RouteExplanation
from turnloom.explain.spec.route import FlowRouteExplained, RouteExplained, WeighedRule


class Routes:
    """The routes of a run by event, each written once, beside the turn or artifact that led to
    it."""

    def __init__(self, routes: Mapping[int, RouteExplanation]) -> None:
        self._left = dict(routes)
        self._anchors: dict[int, str] = {}

    def write(self, seq: int) -> Content:
        """The route of an event with everything that was considered, or a link to it."""
        if seq in self._anchors:
            return element("p", link(self._anchors[seq], "What was considered, above"))
        if (route := self._left.pop(seq, None)) is None:
            return None
        anchor = self._anchors[seq] = f"route-{seq}"
        return element("div", _contents(route), class_="route", id=anchor)

    def left(self) -> Sequence[Html]:
        """The routes that are not written yet, each under its headline."""
        return [
            folded([route.headline, " ", seq_link(seq)], self.write(seq), class_="decision")
            for seq, route in [*self._left.items()]
        ]

    @property
    def anchors(self) -> Mapping[int, str]:
        """The anchors of the routes that are written."""
        return self._anchors


def _contents(route: RouteExplanation) -> Content:
    match route:
        case RouteExplained():
            return [_rules(route), lines(route.alternatives)]
        case FlowRouteExplained():
            return lines(route.parts)
        case OfferExplained():
            return [_offers(route), lines([*route.otherwise, *route.choice])]
        case ConsumptionExplained():
            rows = (each.cells for each in route.artifacts)
            taken = table(ARRIVED, rows, "Artifacts of the set")
            return [taken, element("p", route.reason, " ", seq_link(route.cause))]


def _rules(route: RouteExplained) -> Html:
    if not route.rules:
        return element("p", "Rules: none was considered")
    columns = ("rule", "target", "condition", "saw", "verdict")
    return table(columns, map(_rule, route.rules), "Rules considered, in order")


def _rule(each: WeighedRule) -> tuple[Content, ...]:
    verdict = element("b", each.verdict, class_="good") if each.fired else each.verdict
    return str(each.rule), each.target, element("code", each.wants), each.sight, verdict


def _offers(route: OfferExplained) -> Html:
    if not route.to:
        return element("p", route.no_verdicts)
    rows = (
        (each.subscription, each.description if each.refused else element("b", each.description))
        for each in route.to
    )
    return table(("subscription", "verdict"), rows, "Subscriptions considered, in order")
