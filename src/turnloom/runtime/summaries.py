"""Runs in one line each."""

from collections.abc import Mapping
from dataclasses import replace

from turnloom.log.events import RunPaused, RunStarted
from turnloom.log.logic import BROKEN, status_of
from turnloom.log.ports import EventLog
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, RunKey, Unreadable
from turnloom.runs.chat import is_talk
from turnloom.runtime.logic import ENDED
from turnloom.runtime.spec import RunSummary, continued_by

# The status of a run that no worker has the code of.
STRANDED = "stranded"


async def summary_of(log: EventLog, run: RunKey) -> RunSummary:
    """A run in one line.

    Raises:
        UnknownRun: there is no such run.
    """
    return summarise(run.tenant, *await ends_of(log, run))


def as_stranded(summary: RunSummary, stranded: Mapping[str, str]) -> RunSummary:
    """The summary of a run that no worker has the code of, if this is one."""
    needs = stranded.get(summary.run)
    if needs is None or summary.status in ENDED:
        return summary
    reason = (
        f"no worker has its code: {needs}. Start one that does: `turnloom worker --workflows DIR` "
        "or `--app MODULE:APP`."
    )
    return replace(summary, status=STRANDED, reason=reason)


def summarise(tenant: str, first: Event, last: Event) -> RunSummary:
    """A run in one line, from its first and its last event."""
    started: RunStarted | Unreadable = first.data
    if isinstance(started, Unreadable):
        return RunSummary(
            last.run,
            "",
            BROKEN,
            tenant,
            user="",
            started=first.at,
            latest=last.at,
            events=last.seq,
            reason=started.reason,
        )
    rest = last.data if isinstance(last.data, RunPaused) else RunPaused("")
    reason = last.data.reason if isinstance(last.data, Unreadable) else ""
    return RunSummary(
        last.run,
        started.workflow,
        status_of(last),
        started.tenant,
        user=started.user,
        started=first.at,
        latest=last.at,
        events=last.seq,
        reason=reason,
        collected=rest.collected,
        wanted=rest.wanted,
        continues=continued_by(last.run) if is_talk(started.form) else "",
    )
