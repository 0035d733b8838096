"""Sources are checked when they are declared, and again against what they name."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, NotRequired, Optional

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from turnloom import RagCollection
from turnloom.assembly.logic.checking import as_sources, check_sources
from turnloom.assembly.logic.descriptions import describe_sources
from turnloom.assembly.logic.states import Anything, At
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.sources import (
    Source,
    from_history,
    from_literal,
    from_provider,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.errors import UsageError


class Library(RagCollection):
    name = "library"


class Archive(RagCollection):
    pass


async def wins(request: Any) -> Any:
    raise NotImplementedError


async def later(state: Any) -> str:
    return ""


def two(state: Any, more: Any) -> str:
    return ""


def in_short(messages: Any) -> str:
    return ""


# What could not work, and the name or the value that the refusal is about.
REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("''", lambda: from_state("")),
    ("'a..b'", lambda: from_state("a..b")),
    ("from_state.* 5", lambda: from_state(5)),
    ("state: Any, more: Any", lambda: from_state(two)),
    ("later", lambda: from_state(later)),
    ("dict", lambda: from_retrieval(dict, "x")),
    ("top_k", lambda: from_retrieval(Library, "x", top_k=0)),
    ("min_relevance.* 1.5", lambda: from_retrieval(Library, "x", min_relevance=1.5)),
    ("'library'", lambda: from_retrieval(Library, "  ")),
    ("`query`.* 5", lambda: from_retrieval(Library, 5)),
    ("`query`.*later", lambda: from_retrieval(Library, later)),
    ("'a'", lambda: from_retrieval(Library, "x", filters={"a": two})),
    (r"`filters`.*\['a'\]", lambda: from_retrieval(Library, "x", filters=["a"])),
    ("from_literal.*''", lambda: from_literal("")),
    ("from_variables", lambda: from_variables()),
    ("'a', 'a'", lambda: from_variables("a", "a")),
    (r"\['a'\]", lambda: from_variables(["a"])),
    ("5", lambda: from_provider(5)),
    ("0", lambda: from_provider(wins, timeout=0)),
    ("`last`", lambda: from_history(0)),
    ("`tokens`", lambda: from_history(tokens=True)),
    ("`summarise`", lambda: from_history(summarise=in_short)),
    ("`summarise`.*state: Any, more: Any", lambda: from_history(5, summarise=two)),
    ("`min_tokens`.* -1", lambda: from_literal("x", min_tokens=-1)),
    ("`priority`.*'1'", lambda: from_literal("x", priority="1")),
    ("`title`.* None", lambda: from_literal("x", title=None)),
    ("`max_tokens`.* 0", lambda: Budget(0)),
    ("none, json, xml, not 'yaml'", lambda: ContextFormat(fence="yaml")),
    ("'any'", lambda: ContextFormat(order="any")),
    ("`header`.*'name'", lambda: ContextFormat(header="{name}")),
    ("`separator`", lambda: ContextFormat(separator=None)),
    ("`separators`.*'x'", lambda: ContextFormat(separators={"x": ""})),
    ("`templates`.*'x'", lambda: ContextFormat(templates={"x": ""})),
    ("'score'", lambda: ContextFormat(templates={"state": "{content}{score}"})),
    ("'content'", lambda: ContextFormat(templates={"state": "here"})),
    ("`citation`.*'page'", lambda: ContextFormat(citation="[{page}]")),
    (
        "'json'.*templates, citation",
        lambda: ContextFormat(
            fence="json", templates={"state": "{content}"}, citation="[{source_id}]"
        ),
    ),
    (
        "'xml'.*separators, header",
        lambda: ContextFormat(fence="xml", separators={"state": ""}, header="# {title}\n"),
    ),
]


@pytest.mark.parametrize(("named", "make"), REFUSED)
def test_what_could_not_work_is_refused_when_it_is_declared(
    named: str, make: Callable[[], object]
) -> None:
    with pytest.raises(UsageError, match=named):
        make()


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(UsageError, match=r"context\[1\].*'summary'"):
        as_sources([from_literal("x"), "summary"])


def test_sources_never_change_and_compare_by_what_they_say() -> None:
    source = from_state("a.b", priority=2)
    with pytest.raises(FrozenInstanceError):
        source.priority = 3
    assert source == from_state("a.b", priority=2) != from_state("a.b")


def test_functions_of_python_can_read() -> None:
    assert from_state(len).at is len
    assert from_state(str.upper).at == str.upper


class Address(TypedDict):
    city: str
    street: NotRequired[str]


@dataclass
class Customer:
    name: str
    address: Address
    notes: dict[str, int]
    anything: Any = None

    @property
    def initials(self) -> str:
        return self.name[0]

    @property
    def vague(self):
        return self.name


class State(BaseModel):
    summary: str
    customer: Customer
    other: Optional[Customer] = None  # noqa: UP045 - both ways to say it
    either: Customer | Address | None = None
    tags: list[str] = []


def told(*sources: Source, **known: Any) -> list[str]:
    return [
        f"{each.code}: {each.message} {each.remedy}" for each in check_sources(sources, **known)
    ]


@pytest.mark.parametrize(
    "path",
    [
        "summary",
        "tags",
        "customer.name",
        "customer.address.city",
        "customer.address.street",
        "customer.notes.anything",
        "customer.initials",
        "other.name",
        "other",
    ],
)
def test_paths_of_the_state_are_found(path: str) -> None:
    assert told(from_state(path), state_type=State) == []


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("sumary", ["State", "'sumary'", "'summary'"]),
        ("customer.nme", ["'customer'", "Customer", "'nme'", "'name'"]),
        ("summary.x", ["'summary'", "str", "'x'"]),
        ("tags.0", ["'0'"]),
        ("customer.anything", ["'customer.anything'"]),
        ("customer.vague", ["'customer.vague'"]),
        ("either.name", ["'either'", "Customer | Address"]),
    ],
)
def test_paths_that_are_not_there_are_told(path: str, named: list[str]) -> None:
    (problem,) = told(from_state(path), state_type=State)
    assert problem.startswith(f"W055: context[0] from_state({path}): ")
    assert [name for name in named if name not in problem] == []


class Unresolved:
    broken: "Nowhere"  # noqa: F821 - that is the point


def test_types_that_cannot_be_resolved_are_told() -> None:
    (problem,) = told(from_state("broken"), state_type=Unresolved)
    assert problem.startswith("W055: ") and "Unresolved" in problem


def test_a_template_names_only_what_is_there() -> None:
    source = from_retrieval(Library, "{summary} for {customer.name} in {tone} {x y} {}")
    assert told(source, state_type=State, variables={"tone"}) == []
    (problem,) = told(source, state_type=State)
    assert problem.startswith("W056: ") and "'tone'" in problem and "State" in problem
    problems = told(source, variables={"tone"})
    assert ["'summary'" in problems[0], "'customer.name'" in problems[1]] == [True, True]
    assert len(problems) == 2
    assert told(source) == []


def test_variables_are_declared() -> None:
    (problem,) = told(from_variables("tone", "colour"), variables={"tone", "color"})
    assert problem.startswith("W021: context[0] from_variables(tone, colour): ")
    assert "'colour'" in problem and "'color'" in problem


def test_collections_are_registered_or_the_message_says_how() -> None:
    source = from_retrieval(Library, "x")
    assert told(source, collections={Library}) == []
    (problem,) = told(source, collections={Archive})
    assert "'library'" in problem and "app.register_collection(Library, " in problem


def test_filters_that_cannot_be_looked_for_are_told() -> None:
    source = from_retrieval(Library, "x", filters={"team": {"no": 1}, "year": lambda s: {}})
    (problem,) = told(source)
    assert problem.startswith("W058: context[0] from_retrieval(library): ") and "'team'" in problem


def test_all_problems_come_at_once_with_their_places() -> None:
    sources = [from_state("a"), from_literal("x"), from_variables("b", "c"), from_state("d")]
    found = check_sources(sources, State, ())
    assert [(each.place, each.code, each.at) for each in found] == [
        (0, "W055", ("state",)),
        (2, "W021", ("variables", 0)),
        (2, "W021", ("variables", 1)),
        (3, "W055", ("state",)),
    ]


def test_a_source_that_could_not_be_made_keeps_its_place() -> None:
    found = check_sources([None, from_state("a")], State, budget=Budget(5))
    assert [each.place for each in found] == [1]


def test_minimums_have_room_in_the_budget() -> None:
    kept = [from_literal("x", min_tokens=6), from_literal("y"), from_state("summary", min_tokens=5)]
    assert told(*kept, budget=Budget(11)) == []
    assert told(*kept, budget=None) == []
    (problem,) = told(*kept, budget=Budget(10))
    assert problem.startswith("W059: context[2] from_state(summary): ")
    assert "11" in problem and "10" in problem


def test_the_state_may_be_names_with_their_types() -> None:
    state = {"topic": str, "customer": Anything, "tags": list[Anything]}
    paths = ["topic", "customer", "customer.address.city", "tags"]
    assert told(*map(from_state, paths), state_type=state) == []
    problems = told(from_state("topc"), from_state("topic.x"), state_type=state)
    assert "'topc'" in problems[0] and "'topic'" in problems[0]
    assert "'topic'" in problems[1] and "'x'" in problems[1]


def test_a_filter_may_be_read_at_a_path_of_the_state() -> None:
    source = from_retrieval(Library, "x", filters={"team": At("tem"), "lang": At("lang")})
    (problem,) = told(source, state_type={"team": str, "lang": str})
    assert "'team'" in problem and "'tem'" in problem
    assert "filters={'team': from_state('tem')" in describe_sources([source])


def test_sources_are_described_in_the_words_that_declare_them() -> None:
    sources = [
        from_state("customer.name"),
        from_state(two_of, priority=2),
        from_retrieval(Library, "all about {x}", filters={"lang": "en", "team": two_of}),
        from_literal("Always cite sources.", title="Rules", min_tokens=10),
        from_variables("tone", "stage"),
        from_provider(wins, timeout=5),
        from_history(20, summarise=in_short),
    ]
    here = __name__
    assert describe_sources(sources) == "\n".join(
        [
            "1. from_state('customer.name')",
            f"2. from_state({here}.two_of, priority=2)",
            "3. from_retrieval(library, query='all about {x}', top_k=5, "
            f"filters={{'lang': 'en', 'team': {here}.two_of}})",
            "4. from_literal('Always cite sources.', min_tokens=10, title='Rules')",
            "5. from_variables('tone', 'stage')",
            f"6. from_provider({here}.wins, timeout=5)",
            f"7. from_history(last=20, summarise={here}.in_short)",
        ]
    )


def two_of(state: Any) -> str:
    return str(state)[:2]
