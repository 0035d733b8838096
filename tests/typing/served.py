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
    assert_type(await boss.start(build(), Draft(topic="x")), t.Run[Draft])
    assert_type(boss.collection(Library), t.VectorSearch)
    run = await boss.start(build(), Draft(topic="x"))
    await run.outcome()
    said: list[t.ChatEvent] = [each async for each in run.chat()]
    assert said[-1].status == "finished" and (await run.summary()).status == "finished"
    assert boss.explain and boss.history and boss.principal.may("keys")


async def main() -> None:
    """Do all of it."""
    async with t.Loom(store="memory", engine=answers) as app:
        app.board("shop", app_id="acme")
        await show(app)
