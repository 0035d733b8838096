"""Runs in one line each."""

from collections.abc import Mapping
from dataclasses import replace

from turnloom.agents.events import ModelLimited
from turnloom.log.events import RunCancelled, RunFailed, RunPaused, RunStarted
from turnloom.log.logic import BROKEN, status_of
from turnloom.log.ports import EventLog
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, RunFilter, RunKey, Unreadable
from turnloom.runs.chat import is_talk
from turnloom.runtime.logic import ENDED
from turnloom.runtime.ports import Scheduler, is_shared
from turnloom.runtime.spec import LIMITED, STRANDED, LimitWait, RunSummary, continued_by


async def summary_of(log: EventLog, run: RunKey) -> RunSummary:
    """A run in one line.

    Raises:
        UnknownRun: there is no such run.
    """
    return summarise(run.tenant, *await ends_of(log, run))


class RunSummaries:
    """Runs in one line each, with what the scheduler knows of those that it does not drive."""

    def __init__(self, log: EventLog, scheduler: Scheduler) -> None:
        self._log = log
        self._scheduler = scheduler

    async def page(
        self,
        tenant: str,
        limit: int,
        before: str | None,
        which: RunFilter,
        *,
        unfinished: bool,
        explains: bool = True,
    ) -> list[RunSummary]:
        """Runs of a tenant that a filter selects, the latest first. `explains`: with the reasons of
        those that ended.

        Raises:
            UnknownRun: there is no run `before`.
        """
        ends = await self._log.runs(
            tenant, limit, before=before, unfinished=unfinished, which=which
        )
        found = [_shown(summarise(tenant, *each), explains=explains) for each in ends]
        return await self._scheduled(tenant, found)

    async def one(self, run: RunKey, *, explains: bool = True) -> RunSummary:
        """A run. `explains`: with the reason, if it ended.

        Raises:
            UnknownRun: there is no such run.
        """
        found = _shown(await summary_of(self._log, run), explains=explains)
        return (await self._scheduled(run.tenant, [found]))[0]

    async def _scheduled(self, tenant: str, found: list[RunSummary]) -> list[RunSummary]:
        unfinished = [each.run for each in found if each.status not in ENDED]
        if not unfinished:
            return found
        waits = await self._scheduler.limited(tenant, unfinished)
        shared = self._scheduler if is_shared(self._scheduler) else None
        stranded: Mapping[str, str] = await shared.stranded(tenant) if shared else {}
        return [_as_stranded(_as_limited(each, waits), stranded) for each in found]


def _shown(summary: RunSummary, *, explains: bool) -> RunSummary:
    """The summary for those who may see why it ended, or for others."""
    is_hidden = summary.status in ENDED and not explains
    return replace(summary, reason="") if is_hidden else summary


def _as_stranded(summary: RunSummary, stranded: Mapping[str, str]) -> RunSummary:
    """The summary of a run that no worker has the code of, if this is one."""
    needs = stranded.get(summary.run)
    if needs is None or summary.status in ENDED:
        return summary
    reason = (
        f"no worker has its code: {needs}. Start one that does: `turnloom worker --workflows DIR` "
        "or `--app MODULE:APP`."
    )
    return replace(summary, status=STRANDED, reason=reason)


def _as_limited(summary: RunSummary, waits: Mapping[str, LimitWait]) -> RunSummary:
    """The summary of a run that waits for a limit of its tenant, if this is one."""
    wait = waits.get(summary.run)
    if wait is None or summary.status in ENDED:
        return summary
    reason = f"waiting for a limit for {wait.seconds:.0f} s: {wait.reason}"
    return replace(summary, status=LIMITED, reason=reason)


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
    status, reason = status_of(last), ""
    match last.data:
        case Unreadable(reason=reason):
            pass
        case ModelLimited(model=model, reason=allowed):
            status, reason = LIMITED, f"waiting for a limit: {allowed} of {model}"
        case RunFailed(message=reason) | RunCancelled(reason=reason):
            pass
        case _:
            pass
    return RunSummary(
        last.run,
        started.workflow,
        status,
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
