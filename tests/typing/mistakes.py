"""Wrong uses of the public face: type checkers find each line that says so, and nothing else."""

from pydantic import BaseModel

import turnloom as t
from tests.typing.program import Draft, Order, build, is_done, outline


class Other(BaseModel):
    """A state of another flow."""


def of_another(state: Other) -> None:
    """A step of another state."""


def takes_three(state: Draft, ctx: t.StepContext, more: int) -> None:
    """No step."""


def gives_a_state(state: Draft) -> Draft:
    """No step: it gives what changes."""
    return state


def of_a_draft(value: Draft) -> bool:
    """A predicate of something that is no order."""
    return bool(value)


class Mute(t.AgentStep[Draft]):
    """An agent that gives a text."""

    def apply(self, state: Draft, answer: int, context: object) -> None:  # wrong
        return None


async def mistakes(app: t.Loom, board: t.Board, event: t.RunEvent) -> None:
    """Each line that is marked is an error."""
    await app.start(build(), Other())  # wrong
    await app.run(build(), {"topic": "x"})  # wrong
    await app.run("folder")  # wrong
    outcome = await app.run(build())
    print(outcome.state.nothing)  # wrong
    print(outcome.status == "ended")  # wrong
    t.Flow("x", Draft).start_with(of_another)  # wrong
    t.Flow("x", Draft).start_with(takes_three)  # wrong
    t.Flow("x", Draft).start_with(gives_a_state)  # wrong
    t.Flow("x", Draft).start_with(outline).repeat_until(lambda state: "", outline)  # wrong
    t.Flow("x", Draft).start_with(outline).repeat_until(of_another, outline)  # wrong
    t.Flow("x", Draft).start_with(outline, retries=3)  # wrong
    t.Flow("x", Other).start_with(of_another).repeat_until(is_done, of_another)  # wrong
    if event.kind == "turn.started":
        print(event.data.agent)
        print(event.data.nobody)  # wrong
    if event.kind == "turn.begun":  # wrong
        print(event.seq)
    board.agent("a").consumes(Order, where=of_a_draft)  # wrong
    board.agent("a").best_of(2, lambda answer: "much")  # wrong
    await board.publish("text")  # wrong
    print(await app.explain.turn("run"))  # wrong
    print((await app.explain.timeline("run")).changes)  # wrong
    app.register_flow(Draft)  # wrong
    print(t.Nothing)  # wrong
