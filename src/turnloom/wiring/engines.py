"""What makes agents answer, as they choose it."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from turnloom.agents.spec import (
    Agent,
    Answer,
    Engine,
    EngineChoice,
    Script,
    ScriptLine,
    ToolCall,
    Usage,
)
from turnloom.conversation.logic.rosters import Roster
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.kernel.values import nearest
from turnloom.wiring.adapters import adapter
from turnloom.wiring.code import Code
from turnloom.wiring.models import ASKING, TAKING, ModelEngines, NoEngine
from turnloom.wiring.schemes import added, plugin

ENGINES = ("scripted", "functions", *ASKING)
UNNAMED = (
    "Name a `model`, as in 'openai:gpt-5', or an `engine`; write lines into script.yaml; or "
    "say it for all that lack one: `--model`, or `Loom(model=…)` or `Loom(engine=…)` in Python."
)


# How far it is asked who answers for agents: not for what a deployment says, or by its settings, or
# also whether models can be reached, as a run needs it.
Depth = Literal["folder", "settings", "run"]


class Engines:
    """The engines of workflow folders: `engine` answers for agents that choose none; without it,
    the model of the settings does, or else the script or the model that is declared."""

    def __init__(self, engine: Engine | None, models: ModelEngines) -> None:
        self._engine = engine
        self._models = models

    @property
    def common(self) -> Engine | None:
        """The engine that answers for all that choose none, if there is one."""
        return self._engine

    def choose(
        self, code: Code, known: Roster, depth: Depth
    ) -> tuple[dict[str, tuple[Engine, ...]], list[Diagnostic]]:
        """The engines of each agent, and what is wrong with those that have none."""
        found: dict[str, tuple[Engine, ...]] = {}
        problems: list[Diagnostic] = []
        unanswered: dict[tuple[str, str], list[str]] = {}
        for agent in known.agents.values():
            place = known.places[agent.name]
            code_place = place if agent.chain else known.played.get(agent.name, place)
            engines: list[Engine | None] = []
            for choice in agent.chain or (None,):
                try:
                    engines.append(self._engine_of(agent, choice, code.modules, known, depth=depth))
                except DefinitionError as error:
                    problems += code.named(error, _named(agent.name, choice, known), code_place)
                except NoEngine as error:
                    unanswered.setdefault((error.message, error.remedy), []).append(agent.name)
            if len(made := [each for each in engines if each]) == max(1, len(agent.chain)):
                found[agent.name] = tuple(made)
        for (message, remedy), agents in unanswered.items():
            names = dict.fromkeys(agents)
            message = f"Nothing answers for {_listed(names)}. {message}"
            problems.append(Diagnostic(*known.places[agents[0]], "W050", message, remedy))
        return found, problems

    def _engine_of(
        self, agent: Agent, choice: EngineChoice | None, modules: Any, known: Roster, depth: Depth
    ) -> Engine | None:
        """The engine that is chosen for an agent; none when it is not asked for, or in a script
        that cannot be read."""
        if choice is None and self._engine is not None:
            return self._engine
        match choice.type if choice else self._usual(agent, known):
            case "scripted":
                _refuse_code(choice)
                return known.script and _played(agent.name, known.script, modules)
            case "functions":
                return adapter("functions").FunctionEngine(_function(choice, modules))
            case kind if kind in TAKING and _has_code(choice):
                function = _function(choice, modules)
                return self._models.taking(function, kind) if depth == "run" else None
            case kind if kind in ASKING:
                _refuse_code(choice)
                return self._asking(agent, known, kind, depth)
            case other:
                _check_added(other)
                _refuse_code(choice)
                return self._asking(agent, known, other, depth)

    def _asking(self, agent: Agent, known: Roster, kind: str, depth: Depth) -> Engine | None:
        """The engine that asks the model of an agent, of its workflow or of the settings."""
        if depth == "folder":
            return None
        model = agent.model or known.model or self._models.default
        if not model and kind in ASKING:
            lacks = "model" if agent.chain else "engine"
            raise NoEngine(f"No {lacks} is named.", UNNAMED)
        return self._models.engine(model, kind) if depth == "run" else None

    def _usual(self, agent: Agent, known: Roster) -> str:
        """Which engine answers for an agent that chooses none."""
        script, kind = known.script, self._models.kind
        if self._models.default or kind not in ASKING:
            return kind
        if script is None or agent.name in (played := {**script.agents, **script.functions}):
            return "scripted"
        # Without a model, a script plays all agents; it may leave out those that are never reached.
        return kind if agent.model or known.model or not played else "scripted"


def _named(agent: str, choice: EngineChoice | None, known: Roster) -> str:
    """The function that is to answer for an agent, by its choice or by the script."""
    if choice is not None:
        return choice.function or ""
    played = known.script.functions.get(agent) if known.script else None
    return played.function if played else ""


def _listed(agents: Iterable[str]) -> str:
    """Agents by name, as a sentence has them."""
    names = [*map(repr, agents)]
    return f"{'agents' if len(names) > 1 else 'agent'} {', '.join(names)}"


def scripted(script: Script) -> Engine:
    """The engine that says a script's lines."""
    lines = {agent: [_answer(line) for line in lines] for agent, lines in script.agents.items()}
    return adapter("scripted").ScriptedEngine(lines, script.repeats)


def _played(agent: str, script: Script, modules: Any) -> Engine:
    """The engine that answers as a script says: by the agent's function, or by its lines.

    Raises:
        DefinitionError: there is no such function.
    """
    played = script.functions.get(agent)
    if played is None:
        return scripted(script)
    return adapter("functions").FunctionEngine(modules.function(played.file, played.function))


def _answer(line: ScriptLine) -> Answer:
    calls = tuple(ToolCall(call.tool, call.arguments) for call in line.calls)
    return Answer(line.text, Usage(), calls, line.output)


def _check_added(kind: str) -> None:
    """Refuse an engine that no package adds.

    Raises:
        Unanswered: there is no such engine, or its package is broken.
    """
    try:
        found = plugin("engine", kind)
    except UsageError as error:
        raise NoEngine(str(error)) from error
    if found is None:
        there_is = (*ENGINES, *added("engine"))
        hint = nearest(kind, there_is)
        remedy = f"Did you mean {hint!r}?" if hint else f"There is: {', '.join(there_is)}."
        raise NoEngine(f"Engine {kind!r} does not exist.", remedy)


def _has_code(choice: EngineChoice | None) -> bool:
    return choice is not None and bool(choice.file or choice.function)


def _refuse_code(choice: EngineChoice | None) -> None:
    if choice is not None and _has_code(choice):
        reads = "reads script.yaml; it" if choice.type == "scripted" else "asks a model; it"
        message = f"The {choice.type} engine {reads} takes no file or function."
        raise NoEngine(message, "Drop them, or choose the functions engine.")


def _function(choice: EngineChoice | None, modules: Any) -> Callable[..., Any]:
    """The function of the workflow's code that an engine asks, or that makes who answers.

    Raises:
        Unanswered: it is not said which one.
        DefinitionError: there is no such function.
    """
    if choice is None or not (choice.file and choice.function):
        kind = choice.type if choice else "functions"
        message = f"The {kind} engine needs `file` and `function`."
        raise NoEngine(message, "Say which function of which file it is.")
    return modules.function(choice.file, choice.function)
