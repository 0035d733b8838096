"""Where a flow went at one place, or why it stopped, and what followed from that."""

from turnloom.explain.spec.text import Explained
from turnloom.explain.spec.variable import Cause
from turnloom.kernel.pages import visible


class FlowRouteExplained(Explained, frozen=True):
    """Why a flow went where it went: what was decided, what that went by, what led to it and what
    came of it; `kind` is that of the event."""

    run: str
    seq: int
    asked: int
    kind: str
    place: str
    decided: str
    went_by: tuple[str, ...]
    causes: tuple[Cause, ...]
    came_of: tuple[str, ...]

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.parts]))

    @property
    def headline(self) -> str:
        """What was decided where, and which event this is if another one was named."""
        line = f"At seq {self.seq}, {self.decided}, run {self.run}"
        if self.asked == self.seq:
            return line
        return f"At seq {self.asked}, nothing was decided; the next time after it:\n{line}"

    @property
    def parts(self) -> list[str]:
        """What it went by, what led to it and what came of it, a line each."""
        causes = [f"  seq {each.seq}: {each.says}" for each in self.causes]
        lines = [*self.went_by]
        lines += ["Because:", *causes] if causes else []
        lines += ["What came of it:", *(f"  {each}" for each in self.came_of)]
        return lines if self.came_of else lines[:-1]
