"""Items as texts."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

from turnloom.assembly.logic.items import Item
from turnloom.assembly.service.calling import text_from
from turnloom.assembly.service.trail import ask, traced
from turnloom.assembly.spec import ContextProvider, ContextRequest, ContextSlice
from turnloom.assembly.spec.providers import check_provider
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json
from turnloom.variables.logic.types import apart

# Gives the text of an item.
Summarise = Callable[[dict[str, Json]], str | Awaitable[str]]

# How many texts are kept.
MOST = 1_000


class SummaryProvider:
    """Gives the items of its provider with a text in the place of each payload.

    A text is made once for each artifact and content; a plain function is called in a thread.
    """

    stateless = True

    def __init__(self, inner: ContextProvider, summarise: Summarise) -> None:
        check_provider(inner, "The provider inside SummaryProvider")
        if not callable(summarise):
            raise UsageError(f"`summarise` is {summarise!r}. Give what makes a text of an item.")
        self._inner = inner
        self._summarise = summarise
        self.declared: Mapping[str, object] = {"inner": inner, "summarise": summarise}
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        given = await ask(self._inner, request)
        items = [each.with_payload(await self._text(each)) for each in given.items]
        return ContextSlice([*items], given.metadata, given.inputs)

    async def _text(self, item: Item) -> str:
        key = item.artifact, digest(item.text)
        if key not in self._texts:
            what = "`summarise` of SummaryProvider"
            self._texts[key] = await text_from(self._summarise, apart(item), what)
            while len(self._texts) > MOST:
                self._texts.popitem(last=False)
        self._texts.move_to_end(key)
        return self._texts[key]
