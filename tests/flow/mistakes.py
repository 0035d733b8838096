"""Programs with one mistake each: those that build flows, from `mistakes.txt`, and others.

A case is a head `=== CODE title`, and then lines of Python after the prelude; in the place of a
code, `nothing` says that all is right. Values in the title are told, in whatever words. The line
that is to be named ends with the mark `# <--`. A line that begins with `##` is a heading.
"""

import re
from pathlib import Path
from typing import NamedTuple

PRELUDE = """\
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, ConfigDict

from turnloom import *


class Kind(Enum):
    good = "good"
    bad = "bad"
    ugly = "ugly"


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class State(Frozen):
    kind: Kind = Kind.good
    mood: Literal["high", "low"] | None = None
    done: bool = False
    total: int = 0
    name: str = ""
    notes: Annotated[list[str], append] = []
    facts: Annotated[dict[str, int], merge] = {}


def load(state, ctx): return {"total": send(1)}
def work(state, ctx): return {"notes": ["work"]}
def check(state, ctx): return {"done": True}
def alert(state, ctx): send(0)
def join(state, ctx): return {"facts": {"paths": len(ctx.paths)}}
def undo(state, ctx): send(-1)
def close(state, ctx): return None
def send(number): return number


class Ask(AgentStep[State]):
    def user_prompt(self, state): return "Well?"
    def apply(self, state, answer, context): return {"name": answer}


def begun(**settings): return Flow("flow", State, **settings).start_with(load)
"""
FILE = Path(__file__).with_name("mistakes.txt")
MARK = "# <--"

# 'a value', `a name`, <an object>, A.field, a number.
VALUE = re.compile(r"('[^']*')|`([^`…=]+)[…=]*`?|(<[^>]+)|\b([A-Z]\w*\.\w+)|(-?\b\d[\d.]*\b)")


class Mistake(NamedTuple):
    """A program with one mistake: the code that is told, a title, and the line."""

    code: str
    says: str
    line: int
    text: str

    @property
    def values(self) -> list[str]:
        """What of the title is to be found in what is told: names, quoted values and numbers."""
        return [next(filter(None, found)) for found in VALUE.findall(self.says)]


def mistakes(file: Path = FILE, prelude: str = PRELUDE) -> list[Mistake]:
    """Every case of a file."""
    return [_mistake(case, prelude) for case in file.read_text("utf-8").split("\n=== ")[1:]]


def _mistake(case: str, prelude: str) -> Mistake:
    head, *body = case.split("\n")
    lines = [*prelude.split("\n"), *(line for line in body if not line.startswith("## "))]
    marked = [number for number, line in enumerate(lines, 1) if MARK in line]
    code, _, says = head.partition(" ")
    return Mistake(code, says, marked[0] if marked else 0, "\n".join(lines))
