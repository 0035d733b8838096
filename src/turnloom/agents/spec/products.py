"""What an agent makes that is to be published."""

from typing import NamedTuple, Protocol

from turnloom.agents.spec.tasks import Answer, OutputSchema
from turnloom.board.spec import Audience, Visibility
from turnloom.kernel.values import Json


class Made(NamedTuple):
    """Something that an agent made, as it is to be published."""

    type: str
    payload: dict[str, Json]
    tags: tuple[str, ...]
    visibility: Visibility
    partition: str | None


class Products(Protocol):
    """What an agent publishes; `schema` is the form of an answer that says it as data."""

    schema: OutputSchema | None

    async def read(
        self, answer: Answer, audience: Audience, *, is_last: bool
    ) -> tuple[tuple[Made, ...], str]:
        """What an answer holds that is to be published, and what is wrong with it, if anything.
        `audience` may see all that the turn was shown. Only the last engine of a turn has to make
        what the turn is to give."""
        ...
