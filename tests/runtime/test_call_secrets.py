"""Tools and hooks have secrets; what they give, say, raise and write holds marks in their place."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import hook, hooked, outcomes, play, told
from tests.support.logged import logged
from turnloom.agents.spec import Answer, Task, ToolCall
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.testing import ScriptedEngine

TOKEN = "tok-'7\"\n\u2028ü" + "0123456789" * 12
VARIABLES = """
    definitions:
      token: {type: string, secret: true, source: {type: environment, env_var: TOKEN}}
      count: {type: integer, source: {type: derived, default: 0}}
    agents:
      A: {variables: [token]}
    """
TOOLS = [{"agent": agent, "file": "h.py", "function": f"use_{agent}"} for agent in ("A", "B")]
HEAD = "def use_B(given: str): stage.kept['B'] = given\n"


@pytest.fixture(autouse=True)
def nothing_leaks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, no line of the program's log holds the secret."""
    stage.clear()
    caplog.set_level(logging.DEBUG)
    yield
    assert leaks(logged(caplog)) == []


def leaks(text: str) -> list[str]:
    """Forms and pieces of the secret that a text holds."""
    forms = (TOKEN, repr(TOKEN)[1:-1], "0123456789", "tok-'7", "tok-\\'7")
    return [form for form in forms if form in text]


async def run_with(where: Path, code: str, *hooks: str) -> list[Event]:
    """The log of a run in which A and B pass the secret and what looks like its mark to a tool."""
    folder = hooked(
        where,
        [hook("before_chat", name) for name in hooks],
        HEAD + code,
        TOOLS,
        context_variables=VARIABLES,
    )
    arguments = {"given": f"{TOKEN} ⟨secret:token⟩"}
    lines = {
        agent: [Answer(calls=(ToolCall(f"use_{agent}", arguments),)), "Done."] for agent in "AB"
    }
    events = await play(folder, ScriptedEngine(lines), {"TOKEN": TOKEN})
    assert [leaks(codec().encode(event).decode()) for event in events if event.seq > 1] == [[]] * (
        len(events) - 1
    )
    assert events[-1].kind == "run.finished"
    return events


async def test_a_tool_has_the_secret_and_what_it_gives_is_masked(tmp_path: Path) -> None:
    """By name; and as an argument, if the agent that passes it was shown it."""
    code = """
def use_A(given: str, context_variables):
    token = context_variables["token"]
    stage.kept["A"] = (given, token)
    context_variables["copy"] = [token]
    return {"token": token, token: "as a key", "in": f"a text with {token}", "shown": repr(token)}
"""
    events = await run_with(tmp_path, code)
    forged = "⟨secret :token⟩"
    assert stage.kept == {"A": (f"{TOKEN} {forged}", TOKEN), "B": f"⟨secret:token⟩ {forged}"}
    mark = "⟨secret:token⟩"
    result = told(events, "tool.returned")[0].result
    assert result == {
        "token": mark,
        mark: "as a key",
        "in": f"a text with {mark}",
        "shown": result["shown"],
    }
    assert mark in result["shown"]
    assert told(events, "context.changed")[0].value == [mark]


@pytest.mark.parametrize(
    "trouble",
    [
        "raise RuntimeError(token)",
        "raise KeyError(token)",
        "raise ValueError('x' * 1990 + token)",
        "context_variables['count'] = token",
        "return type(token, (), {})",
    ],
)
async def test_what_goes_wrong_in_a_tool_or_hook_is_masked(trouble: str, tmp_path: Path) -> None:
    code = f"""
def use_A(given: str, context_variables):
    token = context_variables["token"]
    {trouble}
def prepare(context_variables):
    token = context_variables["token"]
    {trouble}
"""
    events = await run_with(tmp_path, code, "prepare")
    assert len(outcomes(events)) == 1
    if "count" in trouble:
        assert "⟨secret:token⟩…" in told(events, "context.refused")[0].reason


async def test_a_long_result_of_a_hook_is_cut_after_it_is_masked(tmp_path: Path) -> None:
    code = """
def use_A(given: str): pass
def prepare(context_variables):
    return "x" * 1950 + context_variables["token"] + "y" * 100
"""
    events = await run_with(tmp_path, code, "prepare")
    ((_, _, result),) = outcomes(events)
    assert result.startswith('"xxx') and "x⟨secret:token⟩yy" in result


async def test_an_engine_that_fails_with_a_secret(tmp_path: Path) -> None:
    async def fail(task: Task) -> Answer:
        raise SystemExit(f"no: {TOKEN}")

    folder = hooked(tmp_path, [], HEAD + "def use_A(): pass", TOOLS, context_variables=VARIABLES)
    events = await play(folder, fail, {"TOKEN": TOKEN})
    (failed,) = told(events, "model.failed")
    assert (failed.error, failed.message) == ("SystemExit", "no: ⟨secret:token⟩")


async def test_a_key_that_a_provider_repeats_in_its_refusal_is_not_on_record(
    tmp_path: Path,
) -> None:
    async def fail(task: Task) -> Answer:
        raise PermissionError("Incorrect API key provided: sk-live-9a8b7c6d5e4f")

    folder = hooked(tmp_path, [], HEAD + "def use_A(): pass", TOOLS, context_variables=VARIABLES)
    events = await play(folder, fail, {"TOKEN": TOKEN})
    assert not any("9a8b7c6d5e4f" in codec().encode(event).decode() for event in events)
    (failed,) = told(events, "model.failed")
    assert failed.message == "Incorrect API key provided: ⟨hidden:key⟩"


NAMING = """
async def use_A(given: str, context_variables):
    token, refused = context_variables["token"], []
    for name in (token, f"pay {token}"):
        for attempt in (
            lambda: context_variables.once(name, lambda: 1),
            lambda: use_ui_tool(name, {}),
            lambda: context_variables.set(name, 1),
        ):
            try:
                await attempt()
            except Exception as error:
                refused.append(type(error).__name__)
    return refused
"""


async def test_a_secret_is_no_name(tmp_path: Path) -> None:
    """Names are on record as they are, so one with a secret in it is refused."""
    events = await run_with(tmp_path, NAMING)
    returned = next(fact for fact in told(events, "tool.returned") if fact.tool == "use_A")
    assert returned.result == ["UsageError", "UsageError", "WriteRefused"] * 2
