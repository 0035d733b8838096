"""`turnloom backtest`: what an edited definition would have changed in recorded runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.cli.boards import edited_definition
from turnloom.cli.command import as_text
from turnloom.cli.stored import Json, StoredRunsCommand, find_run, no_runs
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, safe
from turnloom.cli.times import instant_or_age
from turnloom.errors import UsageError
from turnloom.explain.spec.backtest import HEADER, SIDES, Backtest, RunBacktest

_LIMIT = re.compile(r"\s*(value|route|frame|undecided)\s*>\s*(\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True, kw_only=True)
class BacktestCommand(StoredRunsCommand):
    """Decide recorded runs again with an edited definition, and show which values, routes and
    frames would have been different. No model or tool is called, and nothing is stored."""

    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Runs: ids, their beginnings, or `last`."),
    ] = None
    edited: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="FOLDER|FILE.py[:NAME]",
            callback=as_text,
            help="The edited definition: a workflow folder, or a flow or board in a file.",
        ),
    ]
    last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The latest runs of the workflow.")
    ] = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Runs begun since then, as 1h or in ISO 8601."),
    ] = None
    workflow: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", callback=as_text, help="With --last or --since: of this workflow."
        ),
    ] = None
    feedback: Annotated[
        str | None,
        typer.Option(
            metavar="FILTER",
            callback=as_text,
            help="Runs with this feedback, as helpful, 'helpful<0.5' or verdict=wrong.",
        ),
    ] = None
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="LIMIT",
            help="Exit with 1 if more runs differ, as 'route>2%'; also value, frame, undecided.",
        ),
    ] = None
    explain: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Show the first difference of this run side by side."),
    ] = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Backtest the runs, and print the sum and a line for each run that differs."""
        limits = [_limit(each) for each in self.fail_on or ()]
        named = [*(self.runs or ()), *([self.explain] if self.explain else ())]
        if not (named or self.last or self.since or self.feedback):
            raise UsageError(
                "Say which runs to backtest: RUN, `--last N`, `--since TIME` or "
                "`--feedback FILTER`."
            )
        chosen = [await find_run(app, each, self.app_id) for each in dict.fromkeys(named)]
        async with edited_definition(self.edited, self.store, self.app_id) as edited:
            found = await app.history.backtest(
                edited,
                [*dict.fromkeys(chosen)] if chosen else None,
                last=self.last,
                since=instant_or_age(self.since, "--since"),
                workflow=self.workflow,
                feedback=self.feedback,
                app_id=self.app_id,
            )
        if not found.runs and not found.refused:
            terminal.tell(safe(no_runs(self.app_id)))
        if self.json:
            terminal.emit(msgspec.json.encode(_data(found)))
        else:
            self._show(found, chosen[-1] if self.explain else "", terminal)
        return self._judge(found, limits, terminal)

    def _show(self, found: Backtest, explained: str, terminal: Terminal) -> None:
        terminal.show(safe(f"{found.headline}", "bold"))
        rows: Sequence[tuple[str, ...]] = found.rows[1:]
        for part in lay_out(HEADER, rows, tuple, terminal.out.width):
            terminal.show(part)
        for run in found.runs:
            if run.differs or run.run == explained:
                terminal.show(safe(run.headline, "bold red" if run.differs else ""))
            if run.run == explained:
                _show_first(run, terminal)
        for refused in found.refused:
            terminal.fail(f"Run {refused.run} cannot be backtested: {refused.reason}")

    def _judge(
        self, found: Backtest, limits: Sequence[tuple[str, float]], terminal: Terminal
    ) -> int:
        """1 if a limit is exceeded, 2 if a run cannot be backtested."""
        code = 2 if found.refused else 0
        for name, limit in limits:
            rate = found.rate(name)
            if 100 * rate.share > limit:
                share, interval = rate.cells
                terminal.fail(f"{name}>{limit:g}%: {share} runs; the 95 % interval is {interval}.")
                code = code or 1
        return code


def _show_first(run: RunBacktest, terminal: Terminal) -> None:
    first = run.first
    if first is None:
        return
    headline, *rest = str(first).splitlines()
    terminal.show(safe(headline))
    for unknown in rest[: len(first.unknown)]:
        terminal.show(safe(unknown.strip(), "yellow"))
    fields: Sequence[tuple[str, ...]] = [each.cells for each in first.fields]
    for part in lay_out(SIDES, fields, tuple, terminal.out.width):
        terminal.show(part)


def _data(found: Backtest) -> dict[str, object]:
    """A backtest as JSON, with its rates."""
    names = ("value", "route", "frame", "undecided")
    rates = {
        name: {"runs": rate.runs, "of": rate.of, "share": rate.share, "interval": rate.interval}
        for name in names
        for rate in (found.rate(name),)
    }
    return {**msgspec.to_builtins(found), "rates": rates}


def _limit(said: str) -> tuple[str, float]:
    """A limit, as `route>2%`.

    Raises:
        UsageError: it is none.
    """
    found = _LIMIT.fullmatch(said)
    if found is None:
        raise UsageError(
            f"--fail-on is {said!r}. Write value, route, frame or undecided and a share of the "
            "runs, as in 'route>2%'."
        )
    return found[1], float(found[2])
