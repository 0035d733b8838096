"""Several choices as one."""

from functools import partial

from turnloom.assembly.logic.slices import Settled
from turnloom.assembly.service.gathering import ask_chosen
from turnloom.assembly.service.providers.composite import compose
from turnloom.assembly.service.trail import HERE, traced
from turnloom.assembly.spec import Chosen, ContextRequest, ContextSlice


class Choices:
    """Gives what several choices come to, one after the other, as CompositeProvider does; each has
    its own time, and its own fallback.

    It says who failed, so it belongs around providers that redact, never inside of one.
    """

    stateless = True

    def __init__(self, *choices: Chosen) -> None:
        self.choices = choices

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        return await compose([partial(_given, each) for each in self.choices], request)


async def _given(chosen: Chosen, request: ContextRequest) -> Settled:
    return (await ask_chosen(chosen, request, HERE.get().trail)).settled
