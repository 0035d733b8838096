"""What runs, flows, outcomes and explanations look like to people, and in notebooks."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.flow.scenes import Work, flow_of, note, play
from turnloom import Flow, Loom, StepContext

HOSTILE = "<script>alert('x')</script>\x1b[31m\u202e&amp; \"quoted\""
SECRET = "hunter2-secret"


class Tags(HTMLParser):
    """Collects tags and texts, and minds that what was opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(shown: Any) -> str:
    """The text of a page, in which nothing hostile is left."""
    page = shown._repr_html_()
    tags = Tags(page)
    allowed = {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert tags.names <= allowed | {"details", "summary", "pre", "code"}
    text = "".join(tags.texts)
    assert not re.search("[\x1b\u202e]", page) and not re.search("[\x1b\u202e]", repr(shown))
    return text


async def test_what_is_shown_is_text_and_never_a_tag(app: Loom) -> None:
    def told(state: Work, ctx: StepContext) -> dict[str, Any]:
        raise ValueError(HOSTILE)

    flow = flow_of(
        note("first", text=HOSTILE), told, name=HOSTILE.replace("/", "").replace("[", "")
    )
    outcome = await play(app, flow)
    run = app.handle(outcome.run_id)
    assert outcome.run_id in read(run) and outcome.run_id in repr(run)
    assert "<script>alert" in read(outcome) and "failed" in read(outcome)
    assert "ValueError" in repr(outcome)
    assert "<script>" in read(flow) and "first" in repr(flow)
    timeline = await app.explain.timeline(run.id)
    assert "<script>" in read(timeline) and repr(timeline) == str(timeline)
    variable = await app.explain.variable(run.id, "user_id")
    assert "user_id" in read(variable) and repr(variable) == str(variable)


async def test_a_flow_shows_its_ways_or_what_is_wrong_with_it(app: Loom) -> None:
    flow = flow_of(note("a"), note("b"))
    assert "flowchart" in read(flow) and repr(flow) == "<Flow 'work' of Work: a, b>"
    empty = Flow("empty", Work)
    assert "W104" in read(empty) and repr(empty) == "<Flow 'empty' of Work: no steps>"


async def test_a_waiting_outcome_says_whom_it_waits_for(app: Loom) -> None:
    asks = Flow("asks", Work).start_with(note("a")).await_approval("ann", context="Fine?")
    outcome = await app.run(asks.finally_(note("b")))
    assert "waiting for ann" in repr(outcome) and "waiting for ann" in read(outcome)


async def test_secrets_stay_masked(app: Loom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPR_KEY", SECRET)
    source = {"type": "environment", "env_var": "REPR_KEY"}
    secret = {"definitions": {"key": {"type": "string", "secret": True, "source": source}}}

    def leaks(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"text": f"the key is {ctx['key']}"}

    flow = Flow("leaky", Work, variables=secret).start_with(leaks).finally_(note("end"))
    outcome = await app.run(flow)
    assert "the key is" in read(outcome)
    shown: list[Any] = [outcome, await app.explain.timeline(outcome.run_id)]
    shown.append(await app.explain.variable(outcome.run_id, "key"))
    for each in shown:
        assert SECRET not in repr(each) and SECRET not in read(each)
