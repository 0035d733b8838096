"""What an edited run gets from the world: recorded facts that fit it, and unknowns."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    ChanceDrawn,
    ModelAnswered,
    OutputRefused,
    SpeakerPicked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    ToolsOffered,
)
from turnloom.agents.logic.answers import ARTIFACTS
from turnloom.agents.spec import USER, ToolCall
from turnloom.assembly.events import (
    ContextGathered,
    GatheredItem,
    HistorySummarised,
    RetrievalSearched,
)
from turnloom.assembly.logic import EMPTY
from turnloom.assembly.logic.descriptions import name_of
from turnloom.assembly.spec import ChosenProvider
from turnloom.conversation.logic.routing import TRANSFER
from turnloom.flow.events import StepCompensated, StepCompleted
from turnloom.guards.events import LoopChecked, SelectionMade
from turnloom.hooks.events import (
    LifecycleToolCall,
    LifecycleToolResult,
    MessageHookCalled,
    MessageHooked,
)
from turnloom.kernel.values import as_data
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.runs.actions import Draw, Pick
from turnloom.runtime.backtest.comparing import recorded_texts
from turnloom.runtime.backtest.plans import DeclaredAgents
from turnloom.runtime.backtest.spec import EditedThreshold
from turnloom.runtime.backtest.world import EditedWorld
from turnloom.runtime.journal import Journal
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.types import misfit, same
from turnloom.variables.spec import Derived
from turnloom.variables.spec.unknown import Unknown

# Files of folders whose code decides only: it is called again.
_DECIDING = frozenset({"derivations.py"})

_TURN = re.compile(r"t(\d+)(?:/|\Z)")


class RecordedAnswers:
    """Gives an edited run what the record has, and what it can assume where the record has
    nothing."""

    def __init__(
        self,
        world: EditedWorld,
        journal: Journal,
        loaded: LoadedWorkflow,
        agents: DeclaredAgents,
        threshold: EditedThreshold | None = None,
    ) -> None:
        self._world = world
        self._agents = agents
        self._threshold = threshold
        # Values that the call whose facts are fitted has written so far.
        self._overlay: dict[str, Any] = {}
        self._journal = journal
        self._loaded = loaded
        before, now = world.events[0].data.code, loaded.code
        self._changed = {n for n in (*before, *now) if before.get(n) != now.get(n)}
        world.answer_unknown = self.answer_unknown
        world.adapt = self.adapt

    # Recorded facts.

    def adapt(self, key: str, facts: Sequence[Fact]) -> Sequence[Fact] | None:
        """Recorded facts as the edited definition takes them; None if it asks something else."""
        if not facts:
            return facts
        if not self._is_asked(key, facts[-1]):
            return None
        if any(isinstance(each, ChanceDrawn | SpeakerPicked | SelectionMade) for each in facts):
            self._check_choice(facts[-1])
        if isinstance(facts[0], ModelAnswered) and self._reads_values(facts[0].agent):
            self._world.findings.is_assumed |= self._world.findings.has_other_values
        if self._runs_other_code(key, facts[-1]) or self._has_read_other(facts[0]):
            self._world.findings.is_assumed = True
        self._overlay.clear()
        told = (self._told(self._searched(each)) for each in facts)
        return [fitted for each in told for fitted in self._fitted(key, each)]

    def _has_read_other(self, fact: Fact) -> bool:
        """Whether an engine read artifacts that the edited run has not published."""
        return isinstance(fact, ModelAnswered) and bool(self._world.lost_artifacts({*fact.read}))

    def _runs_other_code(self, key: str, fact: Fact) -> bool:
        """Whether a fact was left by code that was edited since."""
        match fact:
            case StepCompleted(step=step) | StepCompensated(step=step):
                return "/a" in key and step in self._changed
            case ToolReturned() | ToolFailed() | LifecycleToolResult() | MessageHooked():
                return any(each not in _DECIDING for each in self._changed)
            case _:
                return False

    def _reads_values(self, agent: str) -> bool:
        """Whether an engine of an agent reads variables beside its frame."""
        staff = self._loaded.staff.get(agent)
        engines = staff.engines if staff else ()
        return any(getattr(each, "takes_variables", False) for each in engines)

    def _is_asked(self, key: str, fact: Fact) -> bool:
        """Whether a recorded fact answers what is asked now."""
        match fact:
            case LifecycleToolResult(status="skipped"):
                return False
            case LoopChecked(similarity=None, error=""):
                detection = self._loaded.guards.loop_detection
                return detection is None or detection.similarity is None
            case ContextGathered(agent=agent, provider=provider, items=items):
                if self._world.lost_artifacts({each.artifact for each in items}):
                    return False
                if not self._agents.has_same_context(agent):
                    return False
                return fact.fallback or provider == self._provider(key, agent, provider)
            case _:
                return True

    def _provider(self, key: str, agent: str, recorded: str) -> str:
        """The name of the provider that is asked under a key, if it is the agent's own."""
        staff = self._loaded.staff.get(agent)
        chosen = staff.context if staff and not staff.contexts else None
        is_own = key.endswith("/context") and not self._loaded.contexts
        if not is_own or not isinstance(chosen, ChosenProvider):
            return recorded
        return chosen.name or name_of(chosen.provider)

    def _check_choice(self, fact: Fact) -> None:
        """Stop if chance, a model or a selection chose among others."""
        action = self._journal.workflow.decide(self._journal.state)
        match fact, action:
            case ChanceDrawn(among=among), Draw(among=now) if among != now:
                self._world.undecide("who is drawn", [f"chance among {', '.join(now)}"])
            case SpeakerPicked(picked=picked), Pick(among=now):
                if self._renamed(USER, picked) not in now:
                    who = [f"the model's choice among {', '.join(now)}"]
                    self._world.undecide("who is picked", who)
            case SelectionMade(), _:
                self._check_selection(fact)
            case _:
                pass

    def _check_selection(self, fact: SelectionMade) -> None:
        selection = self._loaded.guards.selection
        if selection is None:
            return
        known = {*(each.agent for each in fact.candidates), *fact.excluded}
        if self._journal.workflow.form == "conversation" and known != {*selection.candidates}:
            others = ", ".join(selection.candidates)
            self._world.undecide("who is selected", [f"a selection among {others}"])

    def _fitted(self, key: str, fact: Fact) -> Iterator[Fact]:
        """A recorded fact as the edited definition takes it."""
        fact = self._renumbered(key, fact)
        match fact:
            case ContextChanged():
                yield from self._written(fact)
            case ToolReturned(writes=writes) | ToolFailed(writes=writes) if writes:
                kept = tuple(each for write in writes for each in self._written(write))
                changes = tuple(each for each in kept if isinstance(each, ContextChanged))
                yield msgspec.structs.replace(fact, writes=changes)
            case AgentText(agent=agent, text=text):
                yield msgspec.structs.replace(fact, hidden=self._is_hidden(agent, text))
            case AgentOutput():
                yield from self._output(fact)
            case ModelAnswered(calls=calls) if calls:
                named = tuple(self._call(fact.agent, call) for call in calls)
                yield fact if named == calls else msgspec.structs.replace(fact, calls=named)
            case SpeakerPicked(picked=picked):
                yield msgspec.structs.replace(fact, picked=self._renamed(USER, picked))
            case ToolsOffered():
                yield self._offered(fact)
            case _:
                yield fact

    def _searched(self, fact: Fact) -> Fact:
        """A fact; the search with the edited threshold has that one."""
        edited = self._threshold
        if edited is None or not isinstance(fact, RetrievalSearched) or fact != edited.search:
            return fact
        return msgspec.structs.replace(fact, min_relevance=edited.min_relevance)

    def _told(self, fact: Fact) -> Fact:
        """A fact; one that refers to texts of turns which are no longer before it has them."""
        if not isinstance(fact, ContextGathered):
            return fact
        inputs = None if fact.inputs is None else tuple(map(self._with_text, fact.inputs))
        items = tuple(map(self._with_text, fact.items))
        return msgspec.structs.replace(fact, items=items, inputs=inputs)

    def _with_text(self, item: GatheredItem) -> GatheredItem:
        if item.text is not None or item.digest in self._journal.state.texts:
            return item
        return msgspec.structs.replace(item, text=self._texts.get(item.digest))

    @cached_property
    def _texts(self) -> dict[str, str]:
        """The texts that the record has, by digest."""
        events = self._world.events
        return dict(pair for event in events for pair in recorded_texts(event.data))

    def _renumbered(self, key: str, fact: Fact) -> Fact:
        """A fact with the number of its turn in the edited run."""
        found = _TURN.match(key)
        turn = getattr(fact, "turn", None)
        if found is None or turn is None or turn == int(found[1]):
            return fact
        return msgspec.structs.replace(fact, turn=int(found[1]))

    def _written(self, fact: ContextChanged) -> Iterator[ContextChanged | ContextRefused]:
        """A write of code, as the edited variables take it."""
        name = fact.name
        definition = self._journal.workflow.variables.definitions.get(name)
        previous = self._overlay.get(name, self._journal.state.values.get(name))
        if fact.ephemeral or self._is_as_it_was(fact, previous):
            self._overlay[name] = None if fact.removed else fact.value
            yield fact
            return
        if definition is not None and not fact.removed:
            if not isinstance(definition.source, Derived):
                why = f"{name!r} has a {definition.source.type} source and is read-only"
                yield ContextRefused(name, fact.writer, why)
                return
            if problem := misfit(definition, fact.value):
                yield ContextRefused(name, fact.writer, problem)
                return
        if fact.removed or not same(previous, fact.value):
            self._overlay[name] = None if fact.removed else fact.value
            undeclared = definition is None
            yield msgspec.structs.replace(fact, previous=previous, undeclared=undeclared)

    def _is_as_it_was(self, fact: ContextChanged, previous: Any) -> bool:
        """Whether a write meets the same value and declaration as in the record."""
        declared = self._journal.workflow.variables.definitions.get(fact.name)
        if fact.undeclared == (declared is not None) or not same(previous, fact.previous):
            return False
        return declared is None or misfit(declared, fact.value) is None

    def _is_hidden(self, agent: str, text: str) -> bool:
        workflow = self._journal.workflow
        return workflow.triggers.hides(agent, text) or not workflow.shows(agent)

    def _output(self, fact: AgentOutput) -> Iterator[Fact]:
        """An output; after a changed frame, as the edited schema takes it."""
        workflow, agent = self._journal.workflow, fact.agent
        if agent in workflow.products:
            yield from self._product(fact)
            return
        if not self._world.findings.is_assumed:
            yield fact
            return
        output = workflow.outputs.get(agent)
        if output is None:
            text = as_data(fact.output)
            yield AgentText(fact.turn, agent, text, self._is_hidden(agent, text))
            return
        value, problem = output.validate(fact.output)
        if problem is not None:
            yield OutputRefused(fact.turn, agent, output.name, problem)
            return
        hidden = not workflow.shows(agent)
        yield msgspec.structs.replace(fact, model=output.name, output=value, hidden=hidden)

    def _product(self, fact: AgentOutput) -> Iterator[Fact]:
        """An artifact that an agent made, with the labels that the edited board gives it."""
        before, now = self._agents.product(fact.agent, fact.model)
        if before == now:
            yield fact
            return
        self._world.findings.is_assumed = True
        if now is None:
            problem = f"{fact.agent} no longer publishes {fact.model}"
            yield OutputRefused(fact.turn, fact.agent, ARTIFACTS, problem)
            return
        yield self._agents.labelled(fact, before or {}, now)

    def _call(self, agent: str, call: ToolCall) -> ToolCall:
        name = self._renamed(agent, call.tool)
        return call if name == call.tool else msgspec.structs.replace(call, tool=name)

    def _renamed(self, agent: str, name: str) -> str:
        """The name of a handoff's tool, whose rule may have another number now."""
        if not name.startswith(TRANSFER):
            return name
        offered = [
            each.schema.name
            for each in self._journal.workflow.transfers(agent, self._journal.state)
        ]
        if name in offered:
            return name
        target = name.rpartition("_")[0]
        found = [each for each in offered if each.rpartition("_")[0] == target]
        return found[0] if len(found) == 1 else name

    def _offered(self, fact: ToolsOffered) -> ToolsOffered:
        """The tools of a server, of those that the edited definition wants."""
        servers = self._journal.workflow.toolkit.servers
        wanted = next((each.tools for each in servers if each.name == fact.server), ())
        if not wanted:
            return fact
        kept = tuple(each for each in fact.tools if each.name in wanted)
        if {*wanted} - {each.name for each in kept} and not fact.error:
            self._world.findings.unknown[0].append(f"tools of server {fact.server!r}")
        return msgspec.structs.replace(fact, tools=kept)

    # What the record does not hold.

    async def answer_unknown(self, key: str, effect: Effect) -> Sequence[Fact]:
        """Facts in place of an effect that the record does not hold: it is never performed. Only
        loop detection is: it computes, and its embedder is not asked."""
        if key.endswith("/loop"):
            return await effect()
        begun = self._journal.recorded(f"{key}?")
        match begun:
            case LifecycleToolCall():
                return self._unknown_hook(begun)
            case MessageHookCalled():
                return self._unknown_message(key, begun)
            case ToolCalled():
                return self._unknown_tool(begun)
            case _:
                return self._unknown_reading(key)

    def _unknown_hook(self, called: LifecycleToolCall) -> Sequence[Fact]:
        why = f"hook {called.hook!r} is not in the record"
        about = called.trigger, called.agent, called.function, called.file, called.hook
        ended = LifecycleToolResult(*about, "success", 0.0, None)
        return [*self._unknown_writes(f"hook:{called.hook}", why), ended]

    def _unknown_tool(self, called: ToolCalled) -> Sequence[Fact]:
        why = f"tool {called.tool!r} was not called so in the record"
        self._world.findings.is_assumed = True
        result: Any = Unknown(called.tool, why)
        ended = ToolReturned(called.turn, called.agent, called.tool, result)
        return [*self._unknown_writes(f"tool:{called.tool}", why), ended]

    def _unknown_writes(self, writer: str, why: str) -> Iterator[ContextChanged]:
        """Code may write every derived variable."""
        state = self._journal.state
        for name, definition in self._journal.workflow.variables.definitions.items():
            previous = state.values.get(name)
            if isinstance(definition.source, Derived) and not isinstance(previous, Unknown):
                value: Any = Unknown(name, why)
                yield ContextChanged(name, value, previous, writer)

    def _unknown_message(self, key: str, called: MessageHookCalled) -> Sequence[Fact]:
        about = called.turn, called.agent, called.hook_type, called.function, called.file
        if called.hook_type == "process_message_before_send":
            what = f"message hook {called.function!r}"
            self._world.undecide(f"what {called.agent} says", [what], called.turn)
        self._world.findings.unknown[called.turn].append(f"message hook {called.function!r}")
        agent = self._journal.workflow.agents[called.agent]
        heard = [each.text for each in self._journal.state.messages[-1:]]
        shown: Any = agent.instructions
        if called.hook_type == "process_last_received_message":
            shown = heard[0] if heard else ""
        elif called.hook_type == "process_all_messages_before_reply":
            shown = []
        return [MessageHooked(*about, shown)]

    def _unknown_reading(self, key: str) -> Sequence[Fact]:
        """What only reads: context, searches, summaries, the tools of servers."""
        findings, turn = self._world.findings, self._turn(key)
        what = key.removeprefix(f"t{turn}/").removeprefix("chat/")
        agent = self._agent(turn)
        if re.search(r"(?:^|/)context\b", key) or "/provider" in key:
            findings.unknown[turn].append(f"a provider of {agent}")
            return [ContextGathered(turn, agent, "unknown", (), calls=())]
        if key.startswith("chat/server."):
            server = key.removeprefix("chat/server.")
            findings.unknown[0].append(f"tools of server {server!r}")
            return [ToolsOffered(server, (), "its tools are not in the record")]
        if key.startswith("chat/summary/"):
            findings.unknown[turn].append(f"a summary for {agent}")
            return [HistorySummarised(turn, agent, 0, 0, count=0, digest=EMPTY, text="")]
        if key.startswith("chat/") and not key.startswith(("chat/pick", "chat/judge")):
            findings.unknown[turn].append(f"a search for {agent}")
            none: dict[str, Any] = {"top_k": 0, "min_relevance": 0.0, "results": (), "micros": 0}
            return [RetrievalSearched(turn, agent, "", "", **none)]
        if key.startswith(("forward/", "set/")):
            return ()
        self._stop(key, what, turn)
        return ()

    def _stop(self, key: str, what: str, turn: int) -> None:
        """Stop where an answer, a result or a choice is wanted that the record does not hold."""
        agent = self._agent(turn)
        if "/model" in key:
            self._world.stop(f"the record has no further answer of {agent}", turn)
        if re.match(r"s\d+/a\d+\Z", key):
            self._world.stop("the record has no result of this step", turn)
        self._world.undecide(what, [f"{what}, which is not in the record"], turn)

    def _turn(self, key: str) -> int:
        found = _TURN.match(key)
        if found:
            return int(found[1])
        return max(self._journal.state.open, default=0)

    def _agent(self, turn: int) -> str:
        open_turn = self._journal.state.open.get(turn)
        return open_turn.agent if open_turn else ""
