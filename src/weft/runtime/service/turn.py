"""One way to take a turn."""

from collections.abc import Mapping

import msgspec

from weft.agents.events import TurnFinished, TurnStarted
from weft.agents.logic.views import view_of
from weft.agents.spec import UNPREPARED, OutputSchema, Prepared, Task, ToolSchema
from weft.assembly.events import FrameAssembled, Span
from weft.assembly.logic import EMPTY, View, frame, system_text
from weft.assembly.spec import Transcript
from weft.runtime.service.hooks import HookRunner
from weft.runtime.service.journal import Journal
from weft.runtime.service.messages import MessageHooks
from weft.runtime.service.offers import Offer, offers_to
from weft.runtime.service.rounds import Rounds, model_key
from weft.runtime.spec import Loaded, Say, Voice, silence
from weft.variables.logic.exposure import names_of


class Turns:
    """Takes the turns of one run."""

    def __init__(self, journal: Journal, loaded: Loaded, hooks: HookRunner) -> None:
        self._messages = MessageHooks(journal, loaded.message_hooks)
        self._journal = journal
        self._loaded = loaded
        self._hooks = hooks
        self._hooked = bool(journal.workflow.hooks)
        self._rewriting = {
            agent
            for agent in journal.workflow.agents
            if self._messages.has(agent, "process_message_before_send")
        }
        self._again = False

    async def take(self, agent: str, voice: Voice) -> TurnFinished:
        """An agent's go: hooks, the frame recorded and shown, the answer with its tools, hooks.

        Entered again after a kill or an answer, it finds on record what was done and goes on.

        Raises:
            Waiting: a person was asked.
        """
        journal, state = self._journal, self._journal.state
        number = state.open.number if state.open else state.turns + 1
        self._again = state.open is not None
        journal.keep(f"t{number}", lambda: TurnStarted(number, agent))
        if self._hooked:
            await self._hooks.before_agent(number, agent)
        error = await self._answer(number, agent, voice)
        if self._hooked:
            await self._hooks.after_agent(number, agent)
        status = "failed" if error else "done"
        return journal.keep(f"t{number}/end", lambda: TurnFinished(number, agent, status, error))

    async def _answer(self, number: int, agent: str, voice: Voice) -> str:
        """What went wrong with the agent's answer, if anything did."""
        journal = self._journal
        hooked = journal.workflow.message_hooks
        prepared = await self._messages.prepare(number, agent) if hooked else UNPREPARED
        offers = offers_to(journal.workflow.agents[agent], journal, self._loaded)
        shown = journal.keep(
            f"t{number}/frame", lambda: self._assemble(number, agent, offers, prepared)
        )
        # What a hook may rewrite is not heard before it has.
        rewrites = agent in self._rewriting
        task = self._open(shown, offers, silence if rewrites else voice(1))
        if prepared.messages is not None:
            task = msgspec.structs.replace(task, transcript=Transcript(prepared.messages))
        engine = self._loaded.engines[agent]
        hooks = self._messages if rewrites else None
        return await Rounds(journal, engine, task, offers, hooks, voice).answer(shown.digest)

    def _assemble(
        self, number: int, agent: str, offers: Mapping[str, Offer], prepared: Prepared
    ) -> FrameAssembled:
        state = self._journal.state
        shown = self._view(agent, offers, prepared)
        seen = state.views.get(shown.digest)
        history = state.history if prepared.messages is None else Span(0, 0, 0, 0, EMPTY)
        return frame(number, agent, shown, history, seen[0] if seen else 0, state.texts)

    def _view(self, agent: str, offers: Mapping[str, Offer], prepared: Prepared) -> View:
        """The agent's view, made anew only when a value changed since it was last made."""
        journal = self._journal
        revision = journal.state.revision
        kept = journal.views.get(agent)
        if kept is not None and kept[0] == revision and prepared is UNPREPARED:
            return kept[1]
        workflow = journal.workflow
        output = workflow.outputs.get(agent)
        made = view_of(
            workflow.agents[agent],
            workflow.variables,
            journal.state,
            [offer.schema for offer in offers.values() if not offer.auto],
            OutputSchema(output.name, output.schema) if output else None,
            prepared,
        )
        journal.views[agent] = (revision, made)
        return made

    def _open(self, shown: FrameAssembled, offers: Mapping[str, Offer], say: Say) -> Task:
        """The recorded frame as an engine is given it."""
        journal, state = self._journal, self._journal.state
        agent, asked = shown.agent, self._asked(shown.turn) if self._again else 0
        tools, output = (
            self._schemas(shown) if offers or agent in journal.workflow.outputs else NONE
        )
        return Task(
            state.run,
            agent,
            shown.turn,
            state.calls_of.get(agent, 0) - asked + 1,
            f"{state.run}/{model_key(shown.turn, 0)}",
            self._revealed(shown),
            Transcript(state.messages, shown.history.count),
            tools,
            output,
            (),
            journal.workflow.agents[agent].model or self._loaded.model,
            say,
        )

    def _asked(self, turn: int) -> int:
        """How often the engine has answered in this turn already."""
        count = 0
        while self._journal.recorded(f"{model_key(turn, count)}.0") is not None:
            count += 1
        return count

    def _schemas(self, shown: FrameAssembled) -> tuple[tuple[ToolSchema, ...], OutputSchema | None]:
        """The tools and the form of output that a recorded frame tells of."""
        state = self._journal.state
        tools: list[ToolSchema] = []
        output: OutputSchema | None = None
        for segment in state.views[shown.view][1]:
            if segment.kind == "tool":
                tools.append(msgspec.json.decode(state.texts[segment.digest], type=ToolSchema))
            elif segment.kind == "output":
                output = msgspec.json.decode(state.texts[segment.digest], type=OutputSchema)
        return tuple(tools), output

    def _revealed(self, shown: FrameAssembled) -> str:
        """The system text with the secrets put in that are exposed to this agent."""
        text, journal = self._system(shown), self._journal
        exposure = journal.workflow.variables.exposures.get(shown.agent)
        if exposure is None or not journal.secrets:
            return text
        return journal.secrets.reveal(text, names_of(exposure))

    def _system(self, shown: FrameAssembled) -> str:
        """The system text that a recorded frame shows."""
        kept = self._journal.views.get(shown.agent)
        if kept is not None and kept[1].digest == shown.view:
            return kept[1].text
        state = self._journal.state
        return system_text(state.views[shown.view][1], state.texts)


NONE: tuple[tuple[ToolSchema, ...], OutputSchema | None] = ((), None)
