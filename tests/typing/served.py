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
    shop: t.BoardView = ann.board("shop")
    assert await shop.get("none") is None
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
    assert (await run.summary()).user == "boss"
    try:
        assert_type(await run.send("Hello", if_busy="reject"), t.SentMessage)
    except (t.MessageRejected, t.UsageError) as error:
        assert error.code  # a flow takes no messages
    assert boss.explain and boss.history and boss.principal.may("keys")


async def main() -> None:
    """Do all of it."""
    async with t.Loom(store="memory", engine=answers) as app:
        app.board("shop", app_id="acme")
        await show(app)
