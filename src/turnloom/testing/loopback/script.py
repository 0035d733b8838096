"""What a model on loopback is asked, and what it may do about it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnloom.agents.spec import Answer
from turnloom.kernel.values import Json, as_data


@dataclass(frozen=True)
class ModelRequest:
    """A request for an answer, as it came: `headers` by names in lower case, `body` read.

    What it says of the body is the same for both protocols.
    """

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Json]

    @property
    def messages(self) -> list[dict[str, Json]]:
        """What was said, called and given so far, as the protocol has it."""
        return self.body["input"] if "input" in self.body else self.body["messages"]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that may be called."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools") or ()]

    @property
    def results(self) -> list[str]:
        """What tools gave so far, as texts."""
        given = [item.get("output", item.get("content")) for item in self.messages if _ends(item)]
        return [each if isinstance(each, str) else as_data(each) for each in given]

    @property
    def text(self) -> str:
        """The instructions and the messages as one text of data, to look for words in."""
        return as_data([self.body.get("instructions", ""), self.messages])


def _ends(item: Mapping[str, Any]) -> bool:
    """Whether a message says what a call gave."""
    return item.get("role") == "tool" or item.get("type") == "function_call_output"


@dataclass(frozen=True)
class HttpRefusal:
    """The request is refused with a status; `retry_after`, seconds or a date, goes into that
    header. With `is_page`, the message is the body, as a proxy may send a page."""

    status: int
    message: str = "The model on loopback refuses, as it was told to."
    retry_after: float | str | None = None
    is_page: bool = False


@dataclass(frozen=True)
class Broken:
    """The answer begins with this text, and then the connection breaks."""

    text: str = ""


@dataclass(frozen=True)
class Stalled:
    """The answer begins with this text, and then nothing more comes."""

    text: str = ""


@dataclass(frozen=True)
class Paced:
    """An answer that comes slowly: so many seconds pass before each piece of it."""

    answer: str | Answer
    seconds: float


@dataclass(frozen=True)
class Endless:
    """All of an answer but its end: nothing says how or that it ended.

    With `is_closed`, the stream is closed properly all the same.
    """

    answer: str | Answer
    is_closed: bool = True


@dataclass(frozen=True)
class Lingering:
    """A whole answer, behind which the connection stays open if it is streamed."""

    answer: str | Answer


@dataclass(frozen=True)
class Hollow:
    """A reply of the protocol with no answer in it."""


@dataclass(frozen=True)
class Garbled:
    """An answer that is not what the protocol says."""

    body: str = '{"choices": [{"index": 0, '


Line = (
    str | Answer | HttpRefusal | Broken | Stalled | Paced | Endless | Lingering | Hollow | Garbled
)

# What a model says to requests: these lines, one after the other, or whatever a function gives.
Lines = Sequence[Line] | Callable[[ModelRequest], Line | Awaitable[Line]]
