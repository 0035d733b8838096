"""Looking back: what was said before a window, and a summary in its place."""

from collections.abc import Sequence
from typing import NamedTuple

from turnloom.assembly.events import HistorySummarised, Span
from turnloom.assembly.logic.labels import together
from turnloom.assembly.logic.windows import span_of, summary_of
from turnloom.assembly.service.calling import text_from
from turnloom.assembly.service.situations import Situation, expect
from turnloom.assembly.spec.messages import Message
from turnloom.assembly.spec.segments import HistorySummary
from turnloom.assembly.spec.sources import Summarise
from turnloom.errors import ContextUnavailable
from turnloom.kernel.values import said
from turnloom.log.spec import Fact


class Past(NamedTuple):
    """What was said before a window, and its summary, if there is one."""

    span: Span
    summary: HistorySummary | None = None


def extend(past: Past | None, messages: Sequence[Message], outside: int) -> Past:
    """The past up to a window; what was known of it before is not looked through again."""
    if past is None or past.span.count > outside:
        return Past(span_of(messages[:outside]))
    if past.span.count == outside:
        return past
    return Past(span_of(messages[past.span.count : outside], past.span))


async def summarise_once(
    past: Past, summarise: Summarise, messages: Sequence[Message], key: str, situation: Situation
) -> Past:
    """The past with its summary; the same messages are summarised once in a run.

    Raises:
        ContextUnavailable: the function fails, or gives no text.
    """
    span = past.span

    async def effect() -> Sequence[Fact]:
        text = situation.masked(await _summarised(summarise, messages[: span.count], key))
        seen = together(each.visibility for each in messages[: span.count])
        about = span.first, span.last, span.count, span.digest
        return (HistorySummarised(situation.turn, situation.agent, *about, text, seen),)

    (fact,) = await situation.in_run(f"{key}/{span.digest}", effect)
    return past._replace(summary=summary_of(expect(HistorySummarised, fact)))


async def _summarised(summarise: Summarise, messages: Sequence[Message], key: str) -> str:
    what = f"`summarise` of {key}"
    try:
        return await text_from(summarise, messages, what)
    except ContextUnavailable:
        raise
    except Exception as error:
        raise ContextUnavailable(
            f"{what} raised {type(error).__name__}: {said(error)}. Correct it."
        ) from error
