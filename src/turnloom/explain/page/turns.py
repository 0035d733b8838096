"""Turns on a page: what an agent was shown, what it did, and why the work went on as it did."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from turnloom.explain.page.frames import (
    SharedTexts,
    share_bar,
    whole,
    write_segments,
    write_withheld,
)
from turnloom.explain.page.markup import (
    Content,
    Html,
    element,
    folded,
    joined,
    link,
    seq_link,
    turn_anchor,
)
from turnloom.explain.page.routes import Routes
from turnloom.explain.spec.board import WakeReason
from turnloom.explain.spec.steps import LINE, Step
from turnloom.explain.spec.text import duration
from turnloom.explain.spec.turn import NextMove, PartExplained, TurnExplained, audience
from turnloom.kernel.values import as_data

# Turns that are not the first are folded, unless they failed.
_GOOD = frozenset({"done", "open"})


def write_turns(turns: Sequence[TurnExplained], routes: Routes) -> Html:
    """All turns, the first one open."""
    texts = SharedTexts()
    return joined(_turn(each, routes, texts, is_open=not place) for place, each in enumerate(turns))


def _turn(found: TurnExplained, routes: Routes, texts: SharedTexts, *, is_open: bool) -> Html:
    anchor = turn_anchor(found.turn)
    body = element(
        "div",
        element("p", found.headline, class_="proof"),
        [element("p", f"! {doubt}", class_="bad") for doubt in found.doubts],
        _woken(found.woken, routes) if found.woken else None,
        element("div", _saw(found, anchor, texts), _did(found, routes), class_="columns"),
        class_="body",
    )
    failed = found.status not in _GOOD
    return element(
        "details",
        _summary(found, anchor, failed=failed),
        body,
        id=anchor,
        class_="turn bad-turn" if failed else "turn",
        open=is_open or failed,
    )


def _summary(found: TurnExplained, anchor: str, *, failed: bool) -> Html:
    numbers = [f"{found.tokens} tokens" if found.seq else "no frame", duration(found.seconds)]
    numbers += [f"used {found.usage}"]
    onward = f"→ {found.onward.target}" if found.onward and found.onward.target else ""
    return element(
        "summary",
        element("h3", f"Turn {found.turn} ", element("b", found.agent)),
        " ",
        element("span", found.status, class_="pill bad" if failed else "pill"),
        element("span", " · ".join(filter(None, numbers)), class_="numbers"),
        element("span", onward, class_="onward"),
        link(anchor, "#", class_="self", aria_label=f"link to turn {found.turn}"),
    )


def _woken(woken: WakeReason, routes: Routes) -> Html:
    """Why a turn on a board was taken."""
    return element(
        "section",
        element("h4", "Woken"),
        element("p", woken.says, " ", seq_link(woken.seq)),
        routes.write(woken.seq),
    )


def _saw(found: TurnExplained, anchor: str, texts: SharedTexts) -> Html:
    seen_by = f"Shown, for {audience(found.visibility)}" if found.visibility else ""
    return element(
        "section",
        element("h4", "What it saw"),
        element("p", seen_by) if seen_by else None,
        share_bar(found.segments) if found.segments else None,
        write_segments(found.segments, anchor, texts)
        if found.segments
        else element("p", "No frame."),
        [_part(part, f"{anchor}-part-{n}", texts) for n, part in enumerate(found.parts, 1)],
        class_="saw",
    )


def _part(part: PartExplained, anchor: str, texts: SharedTexts) -> Html:
    """An engine or a try beside the first one."""
    head, *_ = part.lines
    frame = part.frame and [
        share_bar(part.frame.segments),
        write_segments(part.frame.segments, anchor, texts),
        write_withheld(part.frame.withheld),
    ]
    return folded(head, frame, _exchanges(map(as_data, part.exchanges)), id=anchor, class_="part")


def _did(found: TurnExplained, routes: Routes) -> Html:
    # The line above the steps says what the turn used.
    used, *_ = found.outcome
    return element(
        "section",
        element("h4", "What was left out"),
        write_withheld(found.withheld),
        element("h4", "What it did"),
        element("p", used, class_="soft"),
        write_steps(found.steps),
        _exchanges(found.exchanged),
        _then(found.onward, routes) if found.onward else None,
        class_="did",
    )


def _exchanges(exchanges: Sequence[str] | Iterator[str]) -> Content:
    found = [element("li", whole(each)) for each in exchanges]
    if not found:
        return None
    return folded("Exchanges, given to later model calls", element("ol", found), class_="exchanges")


def _then(onward: NextMove, routes: Routes) -> Content:
    target = f" → {onward.target}" if onward.target else ""
    return [
        element("h4", "What came then"),
        element("p", f"{onward.kind}{target} ({onward.reason}) ", seq_link(onward.seq)),
        routes.write(onward.seq),
    ]


def write_steps(steps: Sequence[Any]) -> Html:
    """Steps and what happened within them."""
    return element("ol", map(_step, steps), class_="steps")


def _step(step: Step) -> Html:
    within = getattr(step, "within", ())
    return element(
        "li",
        element("span", step.says),
        " ",
        seq_link(step.seq),
        [_value(name, text) for name, text in _long_values(step)],
        write_steps(within) if within else None,
    )


def _value(name: str, text: str) -> Html:
    return element("div", element("span", f"{name}: ", class_="soft"), whole(text))


def _long_values(step: Step) -> Iterator[tuple[str, str]]:
    """The values of a step that its line cuts short."""
    for name, value in msgspec.structs.asdict(step).items():
        if name == "within" or value is None or isinstance(value, int | float):
            continue
        text = value if isinstance(value, str) else as_data(value)
        if len(text) > LINE or "\n" in text.strip():
            yield name, text
