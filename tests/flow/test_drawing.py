"""Pictures of flows: every way that a run can go, in the language of Mermaid."""

import re
from enum import Enum
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Path, complete, escalate_to
from turnloom.kernel.markup import Flowchart

GOLDEN = FilePath(__file__).with_name("editing.mmd")


class Verdict(Enum):
    """What a reader thinks of a text."""

    good = "good"
    bad = "bad"


class Text(BaseModel):
    """What is edited."""

    model_config = ConfigDict(frozen=True)
    verdict: Verdict = Verdict.good
    done: bool = False


def load(state: Text, ctx: Any) -> None: ...
def write(state: Text, ctx: Any) -> None: ...
def polish(state: Text, ctx: Any) -> None: ...
def spell(state: Text, ctx: Any) -> None: ...
def weigh(state: Text, ctx: Any) -> None: ...
def alert(state: Text, ctx: Any) -> None: ...
def shelve(state: Text, ctx: Any) -> None: ...
def publish(state: Text, ctx: Any) -> dict[str, Any]:
    return {"done": bool(ctx.once)}


def withdraw(state: Text, ctx: Any) -> None: ...
def is_long(state: Text) -> bool:
    return state.done


EDITING = (
    Flow("editing", Text)
    .start_with(load, on_failure={ValueError: [alert]})
    .branch(lambda text: text.verdict, {Verdict.good: write, Verdict.bad: [shelve, complete()]})
    .repeat_until(is_long, Path().repeat_until(lambda text: text.done, polish, name="inner"))
    .fork(
        Path(spell).on_failure([alert]),
        Path(weigh).branch(lambda text: text.done, {True: complete(), False: shelve}),
        join=Path().then(publish, name="join", compensate=withdraw, on_failure=[], recover=True),
        name="readers",
    )
    .then(write, name="title", require_confidence=0.8, on_low_confidence=[alert])
    .await_approval(
        "ann",
        timeout=60,
        on_timeout=escalate_to("bob", options=["fine"], timeout=30, on_timeout=[alert]),
        on_rejection=[shelve, complete()],
    )
    .branch(lambda text: text.done or None, {True: polish})
    .on_failure([alert])
    .finally_(publish)
)


def edges(picture: str) -> list[tuple[str, str, str]]:
    """From where to where edges lead, and what stands at them."""
    found = re.findall(r'^    (\w+) -\.?->(?:\|"(.*?)"\|)? (\w+)$', picture, re.MULTILINE)
    return [(source, text, target) for source, text, target in found]


def nodes(picture: str) -> dict[str, str]:
    """What is written in each node."""
    return dict(re.findall(r'^    (\w+)[\[({]+/?"(.*?)"/?[\])}]+$', picture, re.MULTILINE))


def test_a_flow_is_drawn_with_every_way_that_a_run_can_go() -> None:
    assert EDITING.to_mermaid() == GOLDEN.read_text("utf-8")


def test_every_line_is_a_node_or_an_edge_between_nodes_and_all_are_come_to() -> None:
    picture = EDITING.to_mermaid()
    known, ways = nodes(picture), edges(picture)
    assert len(known) + len(ways) + 1 == len(picture.splitlines())
    assert {end for source, _, target in ways for end in (source, target)} == known.keys()
    assert known.keys() - {target for _, _, target in ways} == {"start"}
    assert known.keys() - {source for source, _, _ in ways} == {
        "finished",
        "failed",
        "main_3_join_undo",
    }


def test_ways_that_nothing_recovers_from_lead_to_where_the_flow_stops() -> None:
    flow = Flow("f", Text).start_with(load).await_approval("ann", timeout=5)
    picture = flow.branch(lambda text: text.done or None, {True: write}).to_mermaid()
    stopping = {text for _, text, target in edges(picture) if target == "stopped"}
    assert stopping == {"Reject", "no answer in 5 s", "otherwise"}
    plain = Flow("f", Text).start_with(load).finally_(write).to_mermaid()
    assert plain.splitlines()[1:] == [
        '    start(["f"])',
        '    main_0["load"]',
        "    start --> main_0",
        '    main_1["write"]',
        "    main_0 --> main_1",
        "    main_1 --> finished",
        '    finished(["finished"])',
    ]


def test_an_approval_that_waits_without_an_end_is_drawn() -> None:
    flow = Flow("f", Text).start_with(load).await_approval("ann").finally_(write)
    assert edges(flow.to_mermaid()) == [
        ("start", "", "main_0"),
        ("main_0", "", "main_1"),
        ("main_1", "Reject", "stopped"),
        ("main_1", "Approve", "main_2"),
        ("main_2", "", "finished"),
        ("stopped", "", "failed"),
    ]


def test_one_that_is_passed_on_to_somebody_without_an_end_is_drawn() -> None:
    flow = Flow("f", Text).start_with(load)
    flow.await_approval("ann", timeout=5, on_timeout=escalate_to("bob"))
    ways = edges(flow.finally_(write).to_mermaid())
    assert ("main_1", "no answer in 5 s", "main_1_1") in ways
    assert {text for source, text, _ in ways if source == "main_1_1"} == {"Approve", "Reject"}


def test_texts_are_nothing_but_texts() -> None:
    chart = Flowchart()
    chart.node("a", '1. say "hi" & <go>\n#1 `x` 50% *\\')
    chart.edge("a", "a", "- \t")
    assert str(chart).splitlines()[1:] == [
        '    a["1#46; say #34;hi#34; #38; #60;go#62; #35;1 #96;x#96; 50#37; #42;#92;"]',
        '    a -->|"#45;"| a',
    ]
