"""What tools and hooks write into the context: checked, seen at once, recorded with the result."""

from pathlib import Path

import pytest

from tests.support import stage
from tests.support.hooked import LINES, hook, hooked, outcomes, play, told, values
from turnloom.agents.spec import Answer, Task, ToolCall
from turnloom.log.spec import Event
from turnloom.testing import ScriptedEngine

VARIABLES = """
    definitions:
      fixed: {type: string, source: {type: static, value: stone}}
      flag: {type: boolean, source: {type: environment, env_var: FLAG, default: true}}
      found: {type: object, source:
        {type: database, collection: c, search_by: user_id, field: f, default: {a: [1]}}}
      stage: {type: string, enum: [draft, done], source: {type: derived, default: draft}}
      count: {type: integer, source: {type: derived, default: 0}}
      things: {type: array, source: {type: derived, default: []}}
      more: {type: boolean, source: {type: derived, default: false, triggers: [
        {type: context_changed, variable: stage, equals: done}]}}
    agents:
      A: {variables: [stage, count, things]}
    """


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()


async def write(where: Path, body: str, *, tool: bool = False) -> list[Event]:
    """The log of a run whose first hook, or first tool, does this to its context `c`."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    code = f"from turnloom.errors import WriteRefused\ndef do(ctx):\n    c = ctx\n{lines}\n"
    declared = {"agent": "A", "file": "h.py", "function": "do"}
    hooks, tools = ([], [declared]) if tool else ([hook("before_chat", "do")], [])
    calls = [Answer(calls=(ToolCall("do"),)), *LINES["A"]] if tool else LINES["A"]
    folder = hooked(where, hooks, code, tools, context_variables=VARIABLES)
    return await play(folder, ScriptedEngine({"A": calls, "B": LINES["B"]}))


WAYS = {
    "c.set('count', 3)": {"count": 3},
    "c['count'] = 3": {"count": 3},
    "c.data['count'] = 3": {"count": 3},
    "c.data.data.update(count=3, stage='done')": {"count": 3, "stage": "done"},
    "c.update({'count': 3})": {"count": 3},
    "assert c.setdefault('fresh', [1]) == [1]": {"fresh": [1]},
    "assert c.setdefault('count', 9) == 0": {},
    "c['count'] = 0": {},
    "c['count'] = 1\nc['count'] = 0": {"count": 0},
    "c['count'] = None": {"count": None},
    "c['nothing'] = None": {"nothing": None},
    "c['deep'] = {'a': [{'b': 1.5}, None, True, 'ü']}": {
        "deep": {"a": [{"b": 1.5}, None, True, "ü"]}
    },
    "c['big'] = 2 ** 70": {"big": 2**70},
}


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize("body", WAYS)
async def test_every_way_to_write_is_the_same_write(body: str, tool: bool, tmp_path: Path) -> None:
    events = await write(tmp_path, body, tool=tool)
    assert told(events, "tool.failed") == told(events, "lifecycle.tool_error") == []
    by = {fact.name: fact for fact in told(events, "context.changed")}
    assert {name: fact.value for name, fact in by.items() if name != "more"} == WAYS[body]
    for name, fact in by.items():
        assert fact.undeclared is (name in ("fresh", "nothing", "deep", "big"))
        assert fact.writer == (
            "trigger:more[0]" if name == "more" else f"{'tool' if tool else 'hook'}:do"
        )
    assert ("more" in by) is ("stage" in WAYS[body])


GONE = [
    "del c['count']",
    "assert c.pop('count') == 0",
    "assert c.remove('count')",
    "c['count'] = 7\ndel c.data['count']",
]


@pytest.mark.parametrize("body", GONE)
async def test_every_way_to_take_away_is_a_recorded_deletion(body: str, tmp_path: Path) -> None:
    check = (
        f"{body}\nassert 'count' not in c and c.get('count') is None\nassert 'count' not in [*c]"
    )
    events = await write(tmp_path, check)
    assert told(events, "lifecycle.tool_error") == []
    *_, fact = told(events, "context.changed")
    before = 7 if "7" in body else 0
    assert (fact.name, fact.value, fact.previous, fact.removed) == ("count", None, before, True)
    assert not fact.undeclared


async def test_what_is_not_there_cannot_be_taken_away(tmp_path: Path) -> None:
    body = """
assert not c.remove("nothing") and c.pop("nothing", 5) == 5
try:
    del c["nothing"]
except KeyError as error:
    return str(error)
"""
    events = await write(tmp_path, body)
    assert outcomes(events) == [("do", "success", "'nothing'")]
    assert told(events, "context.changed") == told(events, "context.refused") == []


# What is refused, by name, and the values that the reason names.
REFUSED = {
    "c['fixed'] = 'x'": ("fixed", ("'fixed'", "static")),
    "c['flag'] = False": ("flag", ("'flag'", "environment")),
    "c['found'] = {}": ("found", ("'found'", "database")),
    "del c['fixed']": ("fixed", ("'fixed'", "static")),
    "c.pop('user_id')": ("user_id", ("'user_id'",)),
    "c['chat_id'] = 'x'": ("chat_id", ("'chat_id'",)),
    "c['run_status'] = 'x'": ("run_status", ("'run_status'",)),
    "c['context_aware'] = 1": ("context_aware", ("'context_aware'",)),
    "c.clear()": ("workflow_name", ("'workflow_name'",)),
    "c['count'] = '3'": ("count", ("'count'", "integer", "'3'")),
    "c['count'] = True": ("count", ("'count'", "integer", "True")),
    "c['stage'] = 'gone'": ("stage", ("'stage'", "['draft', 'done']", "'gone'")),
    "c['things'] = (1,)": ("things", ("'things'", "(1,)")),
    "c['things'] = [object]": ("things", ("'things'", "[<class 'object'>]")),
    "c[5] = 1": ("", ("5",)),
    "c[''] = 1": ("", ("''",)),
    "c['\\ud800'] = 1": ("", ("'\\ud800'",)),
}


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize("body", REFUSED)
async def test_what_cannot_be_written_is_refused_and_recorded(
    body: str, tool: bool, tmp_path: Path
) -> None:
    """The writer is told at once; what it wrote before stays, also when it fails."""
    events = await write(tmp_path, f"c['count'] = 5\n{body}\nc['never'] = 1", tool=tool)
    name, named = REFUSED[body]
    (refused,) = told(events, "context.refused")
    writer = f"{'tool' if tool else 'hook'}:do"
    assert (refused.name, refused.writer) == (name, writer)
    assert all(value in refused.reason for value in named), refused.reason
    (failed,) = told(events, "tool.failed" if tool else "lifecycle.tool_error")
    assert failed.error == "WriteRefused"
    assert refused.reason in failed.message
    assert values(events) == {"count": 5}
    assert events[-1].kind == "run.finished"


async def test_a_refusal_that_is_caught_is_recorded_all_the_same(tmp_path: Path) -> None:
    body = """
try:
    c["fixed"] = "x"
except WriteRefused as error:
    return str(error)
"""
    events = await write(tmp_path, body)
    (refused,) = told(events, "context.refused")
    said = outcomes(events)[0][2]
    assert refused.reason in said and "stage, count, things, more" in said


IN_PLACE = {
    "c.data['things'].append(1)\nc.data['things'].append(2)": {"things": [1, 2]},
    "c['things'].append({'a': []})\nc['things'][0]['a'].append(1)": {"things": [{"a": [1]}]},
    "c.data.setdefault('own', []).append(1)": {"own": [1]},
    "mine = {'n': 0}\nc['own'] = mine\nmine['n'] += 1": {"own": {"n": 1}},
    "for value in c.values():\n    if value == []:\n        value.append(4)": {"things": [4]},
    "c['things'].append(1)\nc['things'] = [2]": {"things": [2]},
    "c['things'].append(1)\nc['things'].pop()": {},
    "c.to_dict()['things'].append(1)": {},
    "c['things'].append(1)\nassert c.to_dict()['things'] == [1]": {"things": [1]},
}


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize("body", IN_PLACE)
async def test_what_is_changed_in_place_is_written(body: str, tool: bool, tmp_path: Path) -> None:
    events = await write(tmp_path, body, tool=tool)
    assert told(events, "tool.failed") == told(events, "lifecycle.tool_error") == []
    assert values(events) == IN_PLACE[body]
    writer = f"{'tool' if tool else 'hook'}:do"
    assert {fact.writer for fact in told(events, "context.changed")} <= {writer}


@pytest.mark.parametrize("tool", [False, True])
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("c['found']['a'].append(2)", "found"),
        ("c['things'].append(object())", "things"),
        ("c['things'].append(float('nan'))", "things"),
    ],
)
async def test_what_cannot_be_written_cannot_be_changed_in_place(
    body: str, name: str, tool: bool, tmp_path: Path
) -> None:
    """The call has failed then; what else it wrote stays."""
    events = await write(tmp_path, f"c['count'] = 5\n{body}", tool=tool)
    (refused,) = told(events, "context.refused")
    assert (refused.name, refused.writer) == (name, f"{'tool' if tool else 'hook'}:do")
    (failed,) = told(events, "tool.failed" if tool else "lifecycle.tool_error")
    assert failed.error == "WriteRefused" and refused.reason in failed.message
    assert values(events) == {"count": 5}


async def test_a_call_that_fails_leaves_what_it_changed_in_place(tmp_path: Path) -> None:
    events = await write(tmp_path, "c['things'].append(1)\nraise ValueError('no')")
    assert outcomes(events) == [("do", "ValueError", "no")]
    assert values(events) == {"things": [1]}


async def test_values_cannot_be_changed_behind_the_log(tmp_path: Path) -> None:
    """What was in the hands of a call that is over leads to nothing any more."""
    code = """
def first(context_variables):
    stage.kept["things"] = context_variables["things"]
    stage.kept["things"].append(1)
def second(context_variables):
    stage.kept["things"].append(2)
    return context_variables["things"]
"""
    hooks = [hook("before_chat", "first"), hook("before_chat", "second")]
    events = await play(hooked(tmp_path, hooks, code, context_variables=VARIABLES))
    assert outcomes(events)[1] == ("second", "success", [1])
    assert values(events) == {"things": [1]}


SEVERAL = """
for stage in ("done", "draft", "draft", "done", "draft"):
    c["stage"] = stage
c["passing"] = 1
del c["passing"]
c["passing"] = object()
c["count"] = 0
c["mixed"] = object()
c["mixed"] = 1
"""


@pytest.mark.parametrize("tool", [False, True])
async def test_each_write_of_a_call_is_recorded(tool: bool, tmp_path: Path) -> None:
    """And what follows from each; a value that it has already is no write."""
    events = await write(tmp_path, SEVERAL, tool=tool)
    changes = [(f.name, f.previous, f.value) for f in told(events, "context.changed")]
    assert changes == [
        ("stage", "draft", "done"),
        ("more", False, True),
        ("stage", "done", "draft"),
        ("stage", "draft", "done"),
        ("stage", "done", "draft"),
        ("passing", None, 1),
        ("passing", 1, None),
        ("passing", None, "<ephemeral object>"),
        ("mixed", None, "<ephemeral object>"),
        ("mixed", "<ephemeral object>", 1),
    ]


async def test_the_last_of_several_writes_counts(tmp_path: Path) -> None:
    code = """
def first(context_variables):
    context_variables["pool"] = 1
    context_variables["pool"] = stage.Pool()
    context_variables["other"] = stage.Pool()
    context_variables["other"] = 2
def second(context_variables):
    return [type(context_variables[name]).__name__ for name in ("pool", "other")]
"""
    hooks = [hook("before_chat", "first"), hook("before_chat", "second")]
    events = await play(hooked(tmp_path, hooks, code))
    assert outcomes(events)[1] == ("second", "success", ["Pool", "int"])


async def test_writing_the_same_secret_again_is_no_change(tmp_path: Path) -> None:
    variables = """
    definitions:
      key: {type: string, secret: true, source: {type: environment, env_var: KEY}}
    agents: {}
    """
    code = """
def copy(context_variables):
    context_variables["mine"] = context_variables["key"]
"""
    hooks = [hook("before_chat", "copy"), hook("after_chat", "copy", on="always")]
    folder = hooked(tmp_path, hooks, code, context_variables=variables)
    events = await play(folder, env={"KEY": "hunter2-hunter2"})
    assert [status for _, status, _ in outcomes(events)] == ["success", "success"]
    (change,) = told(events, "context.changed")
    assert change.value == "⟨secret:key⟩"


async def test_a_result_is_recorded_as_it_was_given(tmp_path: Path) -> None:
    """Code that keeps what it gave, or was given, changes nothing that is on record."""
    code = """
CACHE = {"rows": [1]}
async def load(rows: list, context_variables):
    rows[0].append("mine")
    once = await context_variables.once("n", lambda: [1])
    once.append(2)
    answer = await use_ui_tool("load", {"rows": rows})
    assert "seen" not in answer
    answer["seen"] = True
    once = await context_variables.once("n", list)
    await use_ui_tool("load", {"rows": rows, "once": once})
    CACHE["rows"].append(len(rows[0]))
    return CACHE
def spoil():
    CACHE["rows"].append("spoilt")
"""
    tools = [{"agent": "A", "file": "h.py", "function": "load", "tool_type": "UI_Tool"}]
    folder = hooked(tmp_path, [hook("after_agent", "spoil")], code, tools)
    call = Answer(calls=(ToolCall("load", {"rows": [["theirs"]]}),))
    events = await play(
        folder,
        ScriptedEngine({"A": [call, "Ok."], "B": ["Bye."]}),
        says=lambda asked: {} if asked.tool else "Yes.",
    )
    assert told(events, "tool.failed") == []
    assert told(events, "tool.called")[0].arguments == {"rows": [["theirs"]]}
    assert told(events, "tool.returned")[0].result == {"rows": [1, 2]}
    asked = [fact.payload for fact in told(events, "question.asked") if fact.tool]
    assert asked == [{"rows": [["theirs", "mine"]]}, {"rows": [["theirs", "mine"]], "once": [1]}]


async def test_a_call_that_is_over_writes_nothing_any_more(tmp_path: Path) -> None:
    """Neither a thread that was left alone nor a task that outlives its hook."""
    code = """
import threading, time
go, gone = threading.Event(), threading.Event()
def slow(context_variables):
    context_variables["slow"] = "in time"
    go.wait(60)
    try:
        context_variables["slow"] = "too late"
    except Exception as error:
        stage.kept["thread"] = str(error)
    gone.set()
async def starts(context_variables):
    async def later():
        await asyncio.sleep(0.01)
        try:
            context_variables.pop("user_id")
        except Exception as error:
            stage.kept["task"] = str(error)
    stage.kept["held"] = asyncio.create_task(later())
async def deaf(context_variables):
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        stage.kept["deaf"] = asyncio.create_task(goes_on(context_variables))
async def goes_on(context_variables):
    await asyncio.sleep(0.01)
    await context_variables.once("late", dict)
async def waits():
    go.set()
    try:
        await stage.kept["deaf"]
    except Exception as error:
        stage.kept["effect"] = str(error)
    await asyncio.to_thread(gone.wait, 60)
    await stage.kept["held"]
"""
    hooks = [
        hook("before_chat", "slow", timeout_s=0.5, retries=1),
        hook("before_chat", "starts"),
        hook("before_chat", "deaf", timeout_s=0.5),
        hook("before_chat", "waits"),
    ]
    events = await play(hooked(tmp_path, hooks, code))
    assert "'slow'" in stage.kept["thread"] and "hook:slow" in stage.kept["thread"]
    assert "hook:starts" in stage.kept["task"]
    assert "hook:deaf" in stage.kept["effect"]
    assert told(events, "effect.done") == []
    assert values(events) == {"slow": "in time"}
    assert told(events, "context.refused") == []


async def test_writes_of_a_hook_are_in_the_prompt_of_the_turn(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(task: Task) -> Answer:
        seen.append(task.system)
        return Answer("Well.")

    code = """
def count(context_variables):
    context_variables["count"] += 1
    context_variables["things"] = [*context_variables["things"], context_variables["count"]]
"""
    folder = hooked(tmp_path, [hook("before_agent", "count")], code, context_variables=VARIABLES)
    await play(folder, look)
    assert "- count: 1" in seen[0] and "- things: [1]" in seen[0]


async def test_a_context_is_a_mapping(tmp_path: Path) -> None:
    body = """
assert c.data is c and bool(c) and len(c) == len([*c]) == len(c.keys()) == len(c.to_dict())
assert c.contains("count") and "count" in c and not c.contains("nothing")
assert c.get("nothing", 5) == 5 and dict(c.items())["fixed"] == "stone"
assert "count" in repr(c) and "stone" not in repr(c)
return sorted(c)[:3]
"""
    events = await write(tmp_path, body)
    assert outcomes(events) == [("do", "success", ["app_id", "chat_id", "context_aware"])]
