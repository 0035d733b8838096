"""Explanations of runs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from turnloom.app.access import PROGRAM, Access
from turnloom.app.costs import RunCosts
from turnloom.app.history import History, off_loop
from turnloom.errors import UnknownRun, UsageError
from turnloom.kernel.arguments import as_count, as_string

if TYPE_CHECKING:
    from turnloom.explain.logic.texts import TextSearch
    from turnloom.explain.spec.blame import BlameExplained, TextOrigin
    from turnloom.explain.spec.cost import Cost
    from turnloom.explain.spec.diff import TurnDiff
    from turnloom.explain.spec.explanations import RouteExplanation, RunDeclarations
    from turnloom.explain.spec.timeline import Timeline
    from turnloom.explain.spec.turn import TurnExplained
    from turnloom.explain.spec.variable import VariableExplained
    from turnloom.explain.spec.what_if import WhatIf
    from turnloom.log.spec import Event
    from turnloom.wiring import Parts


class Explanations:
    """Explanations of the runs of an app, computed from their logs; `app_id` is the run's tenant,
    by default the caller's."""

    def __init__(
        self,
        history: History,
        parts: "Callable[[], Parts]",
        costs: RunCosts,
        access: Access = PROGRAM,
    ) -> None:
        self._history = history
        self._parts = parts
        self._costs = costs
        self._access = access

    async def turn(
        self, run: str, turn: int, *, agent: str | None = None, app_id: str | None = None
    ) -> "TurnExplained":
        """Explain the frame of a turn; with an `agent`, count only that agent's turns.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the run has no such turn.
        """
        from turnloom.explain.logic.turn import explain_turn

        number = as_count(turn, "`turn`")
        of = _name(agent, "`agent`")
        events = await self._standing(run, app_id)
        return await off_loop(partial(explain_turn, events, number, of))

    async def diff(
        self,
        run: str,
        turn: int,
        against: int | None = None,
        *,
        other_run: str | None = None,
        agent: str | None = None,
        app_id: str | None = None,
    ) -> "TurnDiff":
        """Compare the frame of a turn with that of turn `against` of this or another run, or of the
        same agent's previous turn; with an `agent`, count only that agent's turns.

        Raises:
            UnknownRun: there is no such run.
            UsageError: there is no such turn, or none before it.
        """
        from turnloom.explain.logic.diff import ComparedRun, explain_diff, previous_turn
        from turnloom.explain.logic.turn import find_turn
        from turnloom.log.logic import started_of
        from turnloom.wiring import declared

        number, of = as_count(turn, "`turn`"), _name(agent, "`agent`")
        if other_run is not None and against is None:
            raise UsageError("`other_run` goes with `against`: name the turn of that run.")
        events = await self._standing(run, app_id)
        known = await declared(started_of(events))
        after = before = ComparedRun(events, known)
        new = find_turn(events, number, of).data.turn
        if other_run is not None:
            others = await self._standing(other_run, app_id)
            before = ComparedRun(others, await declared(started_of(others)))
        if against is None:
            old = previous_turn(events, new)
        else:
            old = find_turn(before.events, as_count(against, "`against`"), of).data.turn
        return await off_loop(partial(explain_diff, before, old, after, new))

    async def what_if(
        self,
        run: str,
        turn: int,
        search: int,
        min_relevance: float,
        *,
        app_id: str | None = None,
    ) -> "WhatIf":
        """Backtest a turn with another threshold of a search, which is the event `search`: what it
        would have been shown. No model or tool is called, and nothing is stored.

        Raises:
            UnknownRun: there is no such run.
            UsageError: there is no such turn or search, or the threshold is not from 0 to 1.
            DefinitionError: the run's definition does not pass its check any more.
            PlanChanged: this program declares another plan of its board or flow.
            WorkflowGone: this program cannot restore it.
        """
        from turnloom.assembly.spec.retrieval import check_search
        from turnloom.explain.logic.what_if import edited_threshold, explain_what_if, until_frame
        from turnloom.log.logic import started_of
        from turnloom.runtime.backtest.runs import backtest

        check_search("?", 1, min_relevance)
        events = until_frame(await self._standing(run, app_id), as_count(turn, "`turn`"))
        edit = edited_threshold(events, as_count(search, "`search`"), min_relevance)
        parts = self._parts()
        loaded = await parts.definitions.restore(started_of(events))
        found = await backtest(
            loaded,
            events,
            parts.store.plans,
            loaded,
            has_components=bool(parts.world.components),
            threshold=edit,
        )
        return explain_what_if(events, search, edit, found)

    async def variable(
        self, run: str, name: str, *, at: int | None = None, app_id: str | None = None
    ) -> "VariableExplained":
        """Explain the value of a variable, at the end, or as it was at event `at`, when what later
        retries voided still counted.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the run has no such variable or event.
        """
        from turnloom.explain.logic.variable import explain_variable
        from turnloom.log.logic import started_of
        from turnloom.wiring import declared

        name, at = as_string(name, "`name`"), None if at is None else as_count(at, "`at`")
        events = await self._history.events(run, app_id=app_id)
        known = await declared(started_of(events[:at]))
        return await off_loop(partial(explain_variable, events, name, at, known))

    async def blame(self, run: str, text: str, *, app_id: str | None = None) -> "BlameExplained":
        """Find a text of at least 8 characters in a run: the frames and events that have it, and
        where it entered, also through artifacts of other runs.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the text is too short.
        """
        import msgspec

        from turnloom.explain.logic.blame import TextTrace, explain_blame
        from turnloom.explain.logic.texts import TextSearch
        from turnloom.log.logic import started_of
        from turnloom.wiring import declared

        search = TextSearch(as_string(text, "`text`"))
        events = await self._standing(run, app_id)
        known = await declared(started_of(events))
        trace = await off_loop(partial(TextTrace, events, search, known))
        found = await off_loop(partial(explain_blame, trace, run, text))
        entries = [await self._follow(each, search, app_id) for each in found.entries]
        return msgspec.structs.replace(found, entries=tuple(entries))

    async def _follow(
        self, entry: "TextOrigin", search: "TextSearch", app_id: str | None
    ) -> "TextOrigin":
        """An entry with those in the runs that its artifact came from."""
        import msgspec

        from turnloom.explain.logic.blame import TextTrace

        earlier: list[TextOrigin] = []
        latest, visited, note = entry, {entry.run}, ""
        while latest.from_run and latest.from_run not in visited:
            visited.add(latest.from_run)
            try:
                events = await self._standing(latest.from_run, app_id)
            except UnknownRun:
                note = f"Run {latest.from_run} of artifact {latest.artifact} is not in this store."
                break
            trace = await off_loop(partial(TextTrace, events, search))
            found = trace.published(latest.artifact)
            if found is None:
                break
            earlier.append(found)
            latest = found
        return msgspec.structs.replace(entry, earlier=tuple(earlier), note=note)

    async def route(self, run: str, seq: int, *, app_id: str | None = None) -> "RouteExplanation":
        """Explain the route that an event decided.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the event decides no route.
        """
        from turnloom.explain.logic.route import explain_any_route

        seq = as_count(seq, "`seq`")
        events = await self._standing(run, app_id)
        known = await self._declared(run, events, app_id)
        return await off_loop(partial(explain_any_route, events, seq, known))

    async def timeline(self, run: str, *, app_id: str | None = None) -> "Timeline":
        """The timeline of a run: one row per turn, call, question or route.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.explain.logic.timeline import timeline

        events = await self._history.events(run, app_id=app_id)
        return await off_loop(partial(timeline, events, self._parts().prices))

    async def cost(
        self, run: str, *, turn: int | None = None, app_id: str | None = None
    ) -> "Cost | None":
        """What the model calls of a run cost so far, or those of a turn; None if there were none.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the run has no such turn.
        """
        if turn is None:
            return await self._costs.of(self._access.key(app_id, run, "explain"), self._parts())
        from turnloom.explain.logic.costs import cost_of_turn

        number = as_count(turn, "`turn`")
        events = await self._standing(run, app_id)
        return await off_loop(partial(cost_of_turn, events, number, self._parts().prices))

    async def page(self, run: str, *, app_id: str | None = None) -> str:
        """One self-contained HTML page with all explanations of a run: its timeline, its turns, its
        routes, its variables and its state. It requests nothing, and its texts need no script.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.explain.page.contents import explain_run
        from turnloom.explain.page.document import write_page

        events = await self._history.events(run, app_id=app_id)
        known = await self._declared(run, events, app_id)
        state = await self._history.state(run, app_id=app_id)
        prices = self._parts().prices
        return await off_loop(lambda: write_page(explain_run(events, known, state, prices)))

    async def _declared(
        self, run: str, events: "Sequence[Event]", app_id: str | None
    ) -> "RunDeclarations":
        """What a run was declared with, in its folder or its plan."""
        from turnloom.log.logic import started_of
        from turnloom.wiring import declared

        known = await declared(started_of(events))
        plan = await self._parts().runs.plan(self._access.key(app_id, run, "explain"))
        return known._replace(plan=plan.text) if plan else known

    async def _standing(self, run: str, app_id: str | None) -> "Sequence[Event]":
        """The events of a run that count: retries may have voided some."""
        from turnloom.log.logic import standing

        return standing(await self._history.events(run, app_id=app_id))


def _name(given: str | None, what: str) -> str | None:
    return None if given is None else as_string(given, what)
