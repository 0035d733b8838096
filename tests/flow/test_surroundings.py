"""Variables, hooks and secrets of flows: the same as in workflow folders."""

from typing import Any

import pytest

from tests.flow.scenes import Model, Work, Writer, facts, failing, note, play
from turnloom import Context, DefinitionError, Flow, Loom, MissingContext, StepContext


def derived(default: Any, type: str, *triggers: dict[str, Any]) -> dict[str, Any]:
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type, "source": source}


VARIABLES: dict[str, Any] = {
    "definitions": {
        "tier": {"type": "string", "source": {"type": "static", "value": "gold"}},
        "seen": derived(False, "boolean"),
        "done": derived(
            False, "boolean", {"type": "agent_text", "agent": "Writer", "match": {"equals": "DONE"}}
        ),
    },
}


async def test_steps_read_and_write_variables(app: Loom) -> None:
    async def look(state: Work, ctx: StepContext) -> dict[str, Any]:
        ctx["seen"] = True
        return {"text": ctx["tier"]}

    async def check(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"number": int(ctx["seen"])}

    flow = Flow("work", Work, variables=VARIABLES).start_with(look).then(check)
    outcome = await app.run(flow)
    assert (outcome.state.text, outcome.state.number) == ("gold", 1)
    (changed,) = await facts(app, outcome.run_id, "context.changed")
    assert (changed.name, changed.value, changed.writer) == ("seen", True, "step:look")


async def test_what_a_failed_attempt_wrote_stays_written(app: Loom) -> None:
    async def look(state: Work, ctx: StepContext) -> dict[str, Any]:
        was, ctx["seen"] = ctx["seen"], True
        if ctx.attempt == 1:
            raise ValueError
        return {"number": int(was)}

    flow = Flow("work", Work, variables=VARIABLES).start_with(look, retry=1)
    assert (await app.run(flow)).state.number == 1


async def test_what_agents_say_changes_variables(app: Loom) -> None:
    async def check(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"number": int(ctx["done"])}

    flow = Flow("work", Work, variables=VARIABLES).start_with(Writer(Model("DONE"))).then(check)
    assert (await app.run(flow)).state.number == 1


async def test_hooks_run_around_the_run_and_around_turns(app: Loom) -> None:
    ran: list[str] = []

    def hook(name: str) -> Any:
        def function(context_variables: Context) -> None:
            ran.append(name)

        function.__name__ = name
        return function

    hooks = [
        {"trigger": "before_chat", "function": hook("opens")},
        {"trigger": "before_agent", "agent": "Writer", "function": hook("before")},
        {"trigger": "after_agent", "agent": "Writer", "function": hook("after")},
        {"trigger": "after_chat", "on": "always", "function": hook("closes")},
    ]
    flow = Flow("work", Work, hooks=hooks).start_with(note("a")).then(Writer(Model()))
    await app.run(flow)
    assert ran == ["opens", "before", "after", "closes"]
    ran.clear()
    around = [hooks[0], hooks[3]]
    await play(app, Flow("work", Work, hooks=around).start_with(failing("a")))
    assert ran == ["opens", "closes"]


async def test_variables_that_cannot_be_are_refused_before_anything_runs(app: Loom) -> None:
    wrong = {"definitions": {"tier": {"type": "colour", "source": {"type": "static"}}}}
    flow = Flow("work", Work, variables=wrong).start_with(note("a"))
    with pytest.raises(DefinitionError) as refused:
        await app.run(flow)
    assert "'colour'" in str(refused.value)
    assert await app.runs() == []


async def test_a_run_does_not_begin_without_what_it_requires(
    app: Loom, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"type": "environment", "env_var": "FLOW_TIER"}
    needed = {"definitions": {"tier": {"type": "string", "required": True, "source": source}}}
    monkeypatch.delenv("FLOW_TIER", raising=False)
    flow = Flow("work", Work, variables=needed).start_with(note("a"))
    with pytest.raises(MissingContext) as refused:
        await app.run(flow)
    assert ["'tier'" in each for each in refused.value.problems] == [True]


async def test_a_secret_in_the_state_is_masked_in_the_log_only(
    app: Loom, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"type": "environment", "env_var": "FLOW_KEY"}
    secret = {"definitions": {"key": {"type": "string", "secret": True, "source": source}}}
    monkeypatch.setenv("FLOW_KEY", "s3cr3t-and-long")
    seen: list[str] = []

    async def put(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"text": f"key {ctx['key']}", "notes": [ctx["key"]], "counts": {ctx["key"]: 1}}

    async def read(state: Work, ctx: StepContext) -> None:
        seen.extend([state.text, *state.notes, *state.counts])

    async def fail(state: Work, ctx: StepContext) -> None:
        raise ValueError(f"refused {ctx['key']}")

    flow = Flow("work", Work, variables=secret).start_with(put).then(read).then(fail)
    outcome = await play(app, flow)
    assert seen == ["key s3cr3t-and-long", "s3cr3t-and-long", "s3cr3t-and-long"]
    assert "s3cr3t" not in repr([event.data for event in await app.history.events(outcome.run_id)])
    assert outcome.failure is not None and outcome.failure.message == "refused ⟨secret:key⟩"
    assert "s3cr3t" not in outcome.failure.stack


async def test_a_flow_says_its_version(app: Loom) -> None:
    outcome = await app.run(Flow("work", Work, version="2026-11").start_with(note("a")))
    (started,) = await facts(app, outcome.run_id, "run.started")
    assert (started.workflow, started.workflow_version) == ("work", "2026-11")
