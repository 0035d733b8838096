"""What agents name as their context is there and can give it, or it is told where it is named."""

from pathlib import Path

import pytest

from tests.support.checks import examined
from tests.support.folders import write_folder
from turnloom.errors import Diagnostic

PROVIDERS = """
    from functools import partial
    from pydantic import BaseModel
    from turnloom import ContextRequest, ContextSlice, TranscriptProvider

    async def wins(request: ContextRequest) -> ContextSlice:
        return ContextSlice([])

    class Wins:
        def __init__(self, most: int = 3) -> None:
            self.most = most

        async def __call__(self, request: ContextRequest) -> ContextSlice:
            return ContextSlice([])

    class Told(Wins):
        def __init__(self, most: int) -> None:
            super().__init__(most)

    told = Told(5)
    last = partial(TranscriptProvider(last=1))

    def plain(request):
        return ContextSlice([])

    async def two(request, board):
        return ContextSlice([])

    async def none():
        return ContextSlice([])

    number = 7
    """


def checked(
    where: Path, context: str, code: str = PROVIDERS, file: str = "providers.py"
) -> tuple[bool, list[Diagnostic]]:
    """What a folder whose agent has this context comes to."""
    files = {"agents.yaml": f"A:\n  system_message: Hi.\n  context: {context}\n"}
    return examined(write_folder(where, files | ({file: code} if code else {})))


@pytest.mark.parametrize(
    "context",
    [
        "wins",
        "Wins",
        "told",
        "last",
        "TranscriptProvider",
        "transcript",
        "correlation",
        "[wins, told, transcript]",
        "{filter: {types: [Any]}}",
        "{provider: wins, fallback: nothing, timeout_s: 0.5, config: {most: 3}}",
        "{filter: {}, fallback: told, timeout_s: 5}",
        "{provider: transcript, config: {last: 3, agents: [A]}}",
        "{provider: correlation, config: {limit: 3}}",
    ],
)
def test_what_can_give_context_is_accepted(context: str, tmp_path: Path) -> None:
    is_right, problems = checked(tmp_path, context)
    assert is_right and problems == []


@pytest.mark.parametrize(
    ("context", "code", "says"),
    [
        ("winz", "W048", "Unknown provider 'winz'. Known: TranscriptProvider, wins, "),
        ("winz", "W048", "Did you mean 'wins'?"),
        ("transcrpt", "W048", "Did you mean 'transcript'?"),
        ("zzzzzz", "W048", "Define it in 'providers.py'."),
        ("nothing", "W048", "Unknown provider 'nothing'."),
        ("{filter: {}, fallback: winz}", "W048", "Did you mean 'wins'?"),
        ("[wins, {provider: wins, fallback: nothin}]", "W048", "Did you mean 'nothing'?"),
        ("plain", "W051", "Provider 'plain' is not async. Write `async def"),
        ("two", "W051", "with a request alone: missing a required argument: 'board'."),
        ("none", "W051", "with a request alone: too many positional arguments."),
        ("number", "W051", "Provider 'number' cannot be called."),
        ("Told", "W051", "Provider 'Told' cannot be created: TypeError: "),
        ("Told", "W051", "Create an instance in 'providers.py'"),
        ("ContextSlice", "W051", "Provider 'ContextSlice' cannot be created: TypeError: "),
        ("{provider: transcript, config: {lst: 3}}", "W051", "Did you mean 'last'?"),
        (
            "{provider: transcript, config: {last: 0}}",
            "W051",
            "`last` must be an integer of at least 1, not 0.",
        ),
        ("{provider: transcript, config: {agents: 5}}", "W051", "Correct its `config`."),
        ("{provider: correlation, config: {zzzz: 1}}", "W051", "Known: limit."),
    ],
)
def test_what_cannot_give_context_is_told_where_it_is_named(
    context: str, code: str, says: str, tmp_path: Path
) -> None:
    is_right, (problem,) = checked(tmp_path, context)
    assert not is_right
    assert (problem.file, problem.line, problem.code) == ("Flow/agents.yaml", 3, code)
    assert says in str(problem)


def test_each_problem_has_its_own_line(tmp_path: Path) -> None:
    files = {
        "agents.yaml": """\
            A:
              context:
                - winz
                - provider: wins
                  fallback: winz
                - filter: {typs: [Any]}
            B:
              context:
                provider: plain
                fallback: number
            C: {context: {filter: {where: [[a, near, 1]]}, config: {x: 1}}}
            """,
        "handoffs.yaml": "- {source_agent: A, target_agent: D, handoff_type: after_work}",
        "providers.py": PROVIDERS,
    }
    is_right, problems = examined(write_folder(tmp_path, files))
    assert not is_right
    assert sorted((each.file[5:], each.line, each.code) for each in problems) == [
        ("agents.yaml", 3, "W048"),
        ("agents.yaml", 5, "W048"),
        ("agents.yaml", 6, "W010"),
        ("agents.yaml", 9, "W051"),
        ("agents.yaml", 10, "W051"),
        ("agents.yaml", 11, "W012"),
        ("handoffs.yaml", 1, "W020"),
    ]


def test_a_file_that_is_not_there_is_missed_where_code_is_needed(tmp_path: Path) -> None:
    is_right, (problem,) = checked(tmp_path, "recent_wins", code="")
    assert not is_right
    assert (problem.line, problem.code) == (3, "W040")
    for context in ("transcript", "{filter: {types: [Any]}, fallback: nothing}"):
        assert checked(tmp_path, context, code="")[1] == []


def test_providers_may_stand_with_the_tools(tmp_path: Path) -> None:
    assert checked(tmp_path, "wins", file="tools/providers.py")[1] == []


def test_code_that_does_not_load_is_told_once_and_nothing_that_follows(tmp_path: Path) -> None:
    is_right, (problem,) = checked(tmp_path, "[wins, {filter: {}}, winz]", "import nowhere_at_all")
    assert not is_right
    assert (problem.file, problem.line, problem.code) == ("Flow/providers.py", 1, "W042")


def test_code_is_loaded_only_where_somebody_has_context(tmp_path: Path) -> None:
    assert checked(tmp_path, "[]", "import nowhere_at_all")[1] == []


TYPES = """
    from pydantic import BaseModel
    from turnloom.board.spec import artifact_type

    @artifact_type(name="Lead")
    class Lead(BaseModel):
        name: str

    @artifact_type{named}
    class Other(BaseModel):
        name: str
    """


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("", "`@artifact_type(name=…)`"),
        ("(name='Lead')", "Two types have the name 'Lead'"),
    ],
)
@pytest.mark.parametrize("file", ["providers.py", "tools/providers.py"])
def test_types_have_names_that_last_and_are_their_own(
    named: str, says: str, file: str, tmp_path: Path
) -> None:
    code = TYPES.replace("{named}", named)
    is_right, (problem,) = checked(tmp_path, "{filter: {}}", code, file)
    assert not is_right
    assert (problem.file, problem.line, problem.code) == (f"Flow/{file}", 9, "W051")
    assert says in str(problem)


def test_a_type_that_no_line_declares_is_told_of_the_file(tmp_path: Path) -> None:
    code = """
        from pydantic import create_model
        from turnloom.board.spec import artifact_type

        Lead = artifact_type(create_model("Lead", __module__=__name__, name=(str, ...)))
        """
    _, (problem,) = checked(tmp_path, "{filter: {}}", code)
    assert (problem.file, problem.line, problem.code) == ("Flow/providers.py", 1, "W051")


def test_types_of_the_code_may_have_names_of_their_own(tmp_path: Path) -> None:
    is_right, problems = checked(tmp_path, "{filter: {}}", TYPES.replace("{named}", "(name='B')"))
    assert is_right and problems == []


# ------------------------------------------------------------------ sources

COLLECTION = """
    from turnloom import RagCollection

    class Library(RagCollection):
        name = "library"

    def in_short(messages):
        return "Much was said."

    def two(messages, agent):
        return ""
    """


def searching(name: str) -> str:
    return f"{{sources: [{{retrieval: {{collection: {name}, query: tea}}}}]}}"


def test_a_collection_is_one_of_the_code_or_will_be_registered(tmp_path: Path) -> None:
    is_right, problems = checked(tmp_path, searching("library"), COLLECTION)
    assert is_right and problems == []
    for name, remedy in (("libary", "'library'"), ("RagCollection", "app.register_collection(")):
        is_right, (problem,) = checked(tmp_path, searching(name), COLLECTION)
        assert is_right, "the program that starts it may register that"
        assert (problem.code, problem.line, problem.severity) == ("W057", 3, "warning")
        assert repr(name) in problem.message
        assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("source", "code", "says"),
    [
        ("{history: {last: 1, summarise: two}}", "W012", "It must take one: the messages."),
        ("{provider: winz}", "W048", "Unknown provider 'winz'."),
        ("{filter: {}, fallback: winz}", "W048", "Unknown provider 'winz'."),
        ("{provider: in_short}", "W051", "Provider 'in_short' is not async."),
        ("{state: a..b}", "W012", "Invalid state path 'a..b'."),
    ],
)
def test_what_sources_need_of_the_code_is_told_once(
    source: str, code: str, says: str, tmp_path: Path
) -> None:
    context = f"{{sources: [{{literal: Be kind.}}, {source}]}}"
    is_right, (problem,) = checked(tmp_path, context, COLLECTION)
    assert not is_right
    assert (problem.line, problem.code) == (3, code)
    assert says in str(problem)


def test_a_function_that_is_to_summarise_is_in_the_code(tmp_path: Path) -> None:
    context = "{sources: [{history: {last: 1, summarise: in_shrt}}]}"
    _, (problem,) = checked(tmp_path, context, COLLECTION)
    assert (problem.file, problem.line, problem.code) == ("Flow/agents.yaml", 3, "W043")
    assert checked(tmp_path, context.replace("shrt", "short"), COLLECTION)[1] == []
