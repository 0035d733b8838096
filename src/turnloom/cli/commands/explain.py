"""`turnloom explain`: why an agent saw what it saw, and why the work went where it went."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.explanations import render
from turnloom.cli.pager import paged
from turnloom.cli.stored import Json, RunId, StoredRunsCommand, find_run
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.writing import check_target, write_file
from turnloom.errors import UsageError
from turnloom.explain.spec.diff import TurnDiff
from turnloom.explain.spec.explanations import Explanation
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.explain.spec.what_if import WhatIf

# The value of `--diff` that was left out.
PREVIOUS = "previous"

# Timeline rows that `--route` can explain: rules, artifacts on a board, decisions of a flow.
ROUTES = frozenset({"route", "artifact", "set", "branch", "fork", "join", "loop", "approval"})


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(StoredRunsCommand):
    """Explain a turn, a variable or a route of a run from its log; with none named, show it all."""

    run: RunId
    turn: Annotated[int | None, typer.Option(metavar="N", help="What turn N was shown.")] = None
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Count the turns of this agent only.")
    ] = None
    diff: Annotated[
        str | None,
        typer.Option(
            metavar="[M]",
            callback=as_text,
            help="With --turn: what changed since turn M, or RUN:M of another run; without a "
            "value, since the agent's previous turn.",
        ),
    ] = None
    what_if: Annotated[
        str | None,
        typer.Option(
            metavar="SEQ=SCORE",
            callback=as_text,
            help="With --turn: what it would have been shown if the search of event SEQ had this "
            "threshold.",
        ),
    ] = None
    variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Why a variable has its value.")
    ] = None
    at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="The variable as of this event.")
    ] = None
    route: Annotated[
        int | None, typer.Option(metavar="SEQ", help="Why the work went where it went.")
    ] = None
    blame: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", callback=as_text, help="Which frames and events have a text, and why."
        ),
    ] = None
    brief: Annotated[
        bool, typer.Option("--brief", help="With --turn: leave the prompt itself out.")
    ] = False
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write all of it as one HTML page that needs nothing else; `-` prints the page.",
        ),
    ] = None
    json: Json = False
    no_pager: Annotated[
        bool, typer.Option("--no-pager", help="Show it without a pager, also at a terminal.")
    ] = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the explanation."""
        self._check()
        run = await find_run(app, self.run, self.app_id)
        if self.html is not None:
            return await self._write(app, run, self.html, terminal)
        found = await self._explain(app, run)
        if self.json:
            terminal.emit(msgspec.json.encode(found))
            return 0
        with nullcontext() if self.no_pager else paged(terminal):
            for part in render(found, terminal.out.width, brief=self.brief):
                terminal.show(part)
            if isinstance(found, Timeline):
                self._hint(found, terminal)
        return 1 if isinstance(found, TurnExplained) and not found.verified else 0

    async def _write(self, app: Loom, run: str, file: str, terminal: Terminal) -> int:
        """Write the page of the run."""
        check_target(file)
        page = await app.explain.page(run, app_id=self.app_id)
        if file == "-":
            terminal.out.file.write(page)
        else:
            write_file(file, page)
            terminal.tell(joined("Page of run ", (run, "bold"), ": ", (file, "bold")))
        return 0

    def _check(self) -> None:
        """Refuse options that do not go together."""
        wanted = (self.turn, self.variable, self.route, self.blame)
        count = sum(each is not None for each in wanted)
        if self.html is not None and (self.json or count):
            raise UsageError("`--html` writes all of a run: give it without other options.")
        if count > 1:
            raise UsageError("Ask for one thing at a time: a turn, a variable, a route or a text.")
        if self.agent is not None and self.turn is None:
            raise UsageError("An agent goes with a turn: name the turn, counted for that agent.")
        if self.diff is not None and self.turn is None:
            raise UsageError("`--diff` goes with a turn: name the turn.")
        if self.what_if is not None and (self.turn is None or self.diff or self.agent):
            raise UsageError("`--what-if` goes with a turn alone: name the turn.")
        if self.brief and (self.turn is None or self.json or self.diff is not None):
            raise UsageError("`--brief` goes with a turn alone, for people: name the turn.")
        if self.at is not None and self.variable is None:
            raise UsageError("`--at` goes with a variable: name the variable.")

    async def _explain(self, app: Loom, run: str) -> Explanation:
        app_id = self.app_id
        if self.turn is not None and self.diff is not None:
            return await self._compare(app, run, self.turn, self.diff)
        if self.turn is not None and self.what_if is not None:
            return await self._suppose(app, run, self.turn, self.what_if)
        if self.turn is not None:
            return await app.explain.turn(run, self.turn, agent=self.agent, app_id=app_id)
        if self.variable is not None:
            return await app.explain.variable(run, self.variable, at=self.at, app_id=app_id)
        if self.route is not None:
            return await app.explain.route(run, self.route, app_id=app_id)
        if self.blame is not None:
            return await app.explain.blame(run, self.blame, app_id=app_id)
        return await app.explain.timeline(run, app_id=app_id)

    async def _compare(self, app: Loom, run: str, turn: int, other: str) -> TurnDiff:
        """Compare a turn with the one that `--diff` names."""
        named, _, number = other.rpartition(":")
        if other != PREVIOUS and not number.isdecimal():
            raise UsageError(
                f"`--diff {other}` names no turn. Write a number, or RUN:M for turn M of a run."
            )
        return await app.explain.diff(
            run,
            turn,
            None if other == PREVIOUS else int(number),
            other_run=await find_run(app, named, self.app_id) if named else None,
            agent=self.agent,
            app_id=self.app_id,
        )

    async def _suppose(self, app: Loom, run: str, turn: int, edit: str) -> WhatIf:
        """Backtest a turn with the threshold that `--what-if` names."""
        search, _, score = edit.partition("=")
        try:
            wanted = int(search), float(score)
        except ValueError:
            raise UsageError(
                f"`--what-if {edit}` names no threshold. Write SEQ=SCORE, as in "
                "`--what-if 12=0.65`."
            ) from None
        return await app.explain.what_if(run, turn, *wanted, app_id=self.app_id)

    def _hint(self, found: Timeline, terminal: Terminal) -> None:
        """Suggest what else to ask."""
        terminal.show(safe("Ask for more:", "dim"))
        routes = [str(row.seq) for row in found.rows if row.what in ROUTES]
        asks = [
            *([("--turn", str(found.turns))] if found.turns else []),
            ("--variable", "NAME"),
            ("--blame", "TEXT"),
            *([("--route", routes[0])] if routes else []),
        ]
        for words in asks:
            terminal.show(joined("  ", (self.again("explain", found.run, *words), "bold")))
