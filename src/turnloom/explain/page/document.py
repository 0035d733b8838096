"""The whole page: its head, its sections in order, and what a browser may do with it."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256

from turnloom.agents.events import TurnStarted
from turnloom.explain.page.contents import PageContents
from turnloom.explain.page.markup import Content, Html, element, joined, link, turn_anchor
from turnloom.explain.page.plan import write_plan
from turnloom.explain.page.routes import Routes
from turnloom.explain.page.sections import (
    MANY,
    write_artifacts,
    write_events,
    write_header,
    write_state,
    write_strip,
    write_timeline,
    write_variables,
)
from turnloom.explain.page.style import SCRIPT, STYLE
from turnloom.explain.page.turns import write_turns

# A section of the page: its anchor, its title and its contents.
Section = tuple[str, str, Content]


def write_page(page: PageContents) -> str:
    """A run as one HTML document that requests nothing, and whose texts need no script."""
    title = f"{page.timeline.workflow}, run {page.timeline.run}"
    sections = [*_sections(page)]
    head = joined(
        Html('<meta charset="utf-8">'),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(STYLE)),
    )
    body = joined(
        link("contents", "Skip to the contents", class_="skip"),
        write_header(page),
        _navigation(sections),
        element("main", map(_section, sections), id="contents", class_=_many(page)),
        element("script", Html(SCRIPT)),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _many(page: PageContents) -> str | None:
    """The class of a page with so much on it that a browser lays out only what is on the screen."""
    return "many" if len(page.turns) > MANY else None


def _policy() -> str:
    """What the page may load: nothing but its own style and script."""
    return (
        f"default-src 'none'; style-src '{_digest(STYLE)}'; script-src '{_digest(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _sections(page: PageContents) -> Iterator[Section]:
    """The sections that have contents. What is written earlier is linked to later."""
    routes = Routes(page.routes)
    turns = write_turns(page.turns, routes)
    artifacts = write_artifacts(page, routes)
    decisions = routes.left()
    yield (
        "timeline",
        "Timeline",
        [
            write_strip(page.turns) if page.turns else None,
            write_timeline(page.timeline, _anchors(page, routes)),
        ],
    )
    if page.plan.get("flow"):
        yield "plan", "Plan", write_plan(page.plan, page.events)
    if page.turns:
        yield "turns", "Turns", turns
    if page.artifacts:
        yield "artifacts", "Artifacts", artifacts
    if decisions:
        yield "decisions", "Decisions", decisions
    if page.variables:
        yield "variables", "Variables", write_variables(page.variables)
    yield "state", "State at the end", write_state(page.state)
    yield "events", "Events", write_events(page.events)


def _anchors(page: PageContents, routes: Routes) -> dict[int, str]:
    """The places of turns and routes by event."""
    turns = {
        event.seq: turn_anchor(event.data.turn)
        for event in page.events
        if isinstance(event.data, TurnStarted)
    }
    return {**routes.anchors, **turns}


def _navigation(sections: Sequence[Section]) -> Html:
    links = [element("li", link(anchor, title)) for anchor, title, _ in sections]
    tools = element(
        "div",
        element("label", "Filter ", element("input", type="search", id="filter")),
        element("button", "Open all", type="button", id="open-all"),
        element("button", "Close all", type="button", id="close-all"),
        id="tools",
        hidden=True,
    )
    return element("nav", element("ul", links), tools, aria_label="Sections")


def _section(section: Section) -> Html:
    anchor, title, contents = section
    return element("section", element("h2", title), contents, id=anchor)
