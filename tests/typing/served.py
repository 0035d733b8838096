"""A program that serves several people, with all that principals have."""

from typing import assert_type

import turnloom as t
from tests.typing.program import Draft, Library, answers, build


async def show(app: t.Loom) -> None:
    """Principals see what is theirs."""
    ann: t.LoomView = app.as_principal(t.Principal("acme", "ann", "user", ["runs:read", "board"]))
    waiting: list[t.WaitingQuestion] = await ann.questions()
    summaries: list[t.RunSummary] = await ann.runs(1, unfinished=True)
    assert not waiting and not summaries and ann.handle("none").id
    assert ann.commits() is not None
    shop: t.BoardView = ann.board("shop")
    assert await shop.get("none") is None
    assert await shop.next_opening(shop.now()) is None and shop.commits() is not None
    assert [shop.opening_of(each) async for each in shop.iter_artifacts()] == []
    try:
        assert_type(await ann.run(build()), t.Outcome[Draft])
    except t.Forbidden as error:
        assert error.code
    boss = app.as_principal(t.Principal("acme", "boss", "admin"))
    assert_type(boss.collection(Library), t.VectorSearch)
    run = await boss.start(build(), Draft(topic="x"))
    assert_type(run, t.Run[Draft])
    await run.outcome()
    async for said in run.chat():
        assert_type(said, t.ChatEvent)
        break
    assert (await run.summary()).user == "boss" and await run.answered_by("none") == ""
    try:
        assert_type(await run.send("Hello", if_busy="reject"), t.SentMessage)
    except (t.MessageRejected, t.InboxFull, t.TooManyQuestions, t.UsageError) as error:
        assert error.code  # a flow takes no messages
    assert boss.explain and boss.history and boss.principal.may("keys")


async def serve(app: t.Loom) -> None:
    """A process serves workflows by name."""
    app.register_flow(build())
    served: list[t.ServedWorkflow] = app.workflows.served("acme")
    assert_type(app.workflows, t.Workflows)
    name = next(each.name for each in served if each.form == "flow")
    assert_type(await app.workflows.show(name), t.ShownWorkflow)
    assert await app.workflows.check(name) == [] and await app.workflows.graph(name)
    flow = app.workflows.flow(name)
    assert flow is not None and app.workflows.state(flow, {"topic": "x"})
    try:
        app.workflows.folder("none")
    except t.UnknownWorkflow as error:
        assert error.code
    try:
        app.as_principal(t.Principal("acme", "boss", "admin")).collection("none")
    except t.UnknownCollection as error:
        assert error.code
    assert_type(app.serving, t.Serving)
    assert await app.serving.pick_up() >= 0 and await app.serving.drain(60) == 0
    assert (await app.serving.health())["store"] == "ok"
    assert_type(app.guards, t.GuardRecords)
    beliefs: list[t.AgentBelief] = await app.guards.beliefs("x", ["a"])
    run = await app.start(build(), Draft(topic="x"), app_id="acme")
    await run.outcome()
    assert_type(await app.guards.budget(run.id, app_id="acme"), t.BudgetUse)
    assert not beliefs


async def admit(app: t.Loom) -> None:
    """Callers have keys, give feedback, and leave a trail."""
    keys: t.ApiKeys = app.keys
    made: t.CreatedKey = await keys.create("ann", role="developer", app_id="acme")
    listed: list[t.ApiKey] = await keys.list(app_id="acme")
    auth: t.Authentication = app.auth
    found: t.Credential = await auth.identify(f"Bearer {made.token}")
    assert found.principal.user_id == "ann" and listed == [made.key]
    try:
        await auth.authenticate("Bearer none")
    except t.NotAuthenticated as error:
        assert error.code
    run = await app.start(build(), Draft(topic="x"), app_id="acme")
    await run.outcome()
    opinion: t.Opinion = {"score": 0.5}
    assert_type(await run.feedback("helpful", **opinion), t.Feedback)
    given: t.RunFeedback = app.feedback
    assert len(await given.list(run.id, app_id="acme")) == 1
    trail: t.AuditLog = app.as_principal(t.Principal("acme", "boss", "admin")).audit
    entries: list[t.AuditEntry] = await trail.list()
    assert entries is not None


async def plan(app: t.Loom) -> None:
    """Runs start by themselves."""
    schedules: t.Schedules = app.schedules
    due: list[t.ScheduleStatus] = await schedules.list()
    declared: list[t.Schedule] = [each.schedule for each in due]
    planned: list[t.PlannedStart] = await schedules.planned()
    fired: list[t.StartedFiring] = await schedules.fire_due()
    assert not declared and not planned and not fired


async def main() -> None:
    """Do all of it."""
    async with t.Loom(store="memory", engine=answers) as app:
        app.board("shop", app_id="acme")
        await show(app)
        await serve(app)
        await admit(app)
        await plan(app)
