"""Engines of agents in workflow folders."""

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
from turnloom.conversation.logic.rosters import NamedFunction, Roster
from turnloom.errors import DefinitionError, Diagnostic, UsageError
from turnloom.kernel.values import nearest
from turnloom.wiring.adapters import adapter
from turnloom.wiring.code import Code
from turnloom.wiring.models import ASKING, TAKING, ModelEngines, NoEngine
from turnloom.wiring.schemes import added, plugin

ENGINES = ("scripted", "functions", *ASKING)
UNNAMED = (
    "Set a `model`, such as 'openai:gpt-5', or an `engine`; add lines to script.yaml; or set a "
    "default: `--model`, or `Loom(model=…)` or `Loom(engine=…)` in Python."
)


# How thoroughly engines are checked: `folder` ignores the settings, `settings` requires a model or
# engine to be named, and `run` also creates the engines.
Depth = Literal["folder", "settings", "run"]


class Engines:
    """Engines of workflow folders. `engine` is the default of agents that choose none; without it,
    the default is the model of the settings, then the script or the declared model."""

    def __init__(self, engine: Engine | None, models: ModelEngines) -> None:
        self._engine = engine
        self._models = models

    @property
    def common(self) -> Engine | None:
        """Default engine of all agents, if given."""
        return self._engine

    def choose(
        self, code: Code, known: Roster, depth: Depth
    ) -> tuple[dict[str, tuple[Engine, ...]], list[Diagnostic]]:
        """Engines of each agent, and problems of agents without one."""
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
                    problems += code.named(error, _named(agent.name, choice, known, code_place))
                except NoEngine as error:
                    unanswered.setdefault((error.message, error.remedy), []).append(agent.name)
            if len(made := [each for each in engines if each]) == max(1, len(agent.chain)):
                found[agent.name] = tuple(made)
        for (message, remedy), agents in unanswered.items():
            names = dict.fromkeys(agents)
            message = f"{_agents_have(names)} no engine. {message}"
            problems.append(Diagnostic(*known.places[agents[0]], "W050", message, remedy))
        return found, problems

    def _engine_of(
        self, agent: Agent, choice: EngineChoice | None, modules: Any, known: Roster, depth: Depth
    ) -> Engine | None:
        """Return the engine of an agent; None if the depth needs none, or the script is
        unreadable."""
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
        """Engine of the model that the agent, its workflow or the settings name."""
        if depth == "folder":
            return None
        model = agent.model or known.model or self._models.default
        if not model and kind in ASKING:
            raise NoEngine("No model is set.", UNNAMED)
        return self._models.engine(model, kind) if depth == "run" else None

    def _usual(self, agent: Agent, known: Roster) -> str:
        """Default kind of engine for an agent."""
        script, kind = known.script, self._models.kind
        if self._models.default or kind not in ASKING:
            return kind
        if script is None or agent.name in (played := {**script.agents, **script.functions}):
            return "scripted"
        # Without a model, the script plays all agents, including those it has no lines for: they
        # may never speak.
        return kind if agent.model or known.model or not played else "scripted"


def _named(
    agent: str, choice: EngineChoice | None, known: Roster, place: tuple[str, int]
) -> NamedFunction:
    """The function that answers for an agent, from its choice or the script."""
    played = known.script.functions.get(agent) if known.script else None
    named = choice or played
    return NamedFunction((named and named.file) or "", (named and named.function) or "", place)


def _agents_have(agents: Iterable[str]) -> str:
    """Start a sentence about agents by name."""
    names = [*map(repr, agents)]
    return f"Agents {', '.join(names)} have" if len(names) > 1 else f"Agent {names[0]} has"


def scripted(script: Script) -> Engine:
    """Engine that plays the lines of a script."""
    lines = {agent: [_answer(line) for line in lines] for agent, lines in script.agents.items()}
    return adapter("scripted").ScriptedEngine(lines, script.repeats)


def _played(agent: str, script: Script, modules: Any) -> Engine:
    """Engine of a scripted agent: its function, or its lines.

    Raises:
        DefinitionError: the function does not exist.
    """
    played = script.functions.get(agent)
    if played is None:
        return scripted(script)
    return adapter("functions").FunctionEngine(modules.function(played.file, played.function))


def _answer(line: ScriptLine) -> Answer:
    calls = tuple(ToolCall(call.tool, call.arguments) for call in line.calls)
    return Answer(line.text, Usage(), calls, line.output)


def _check_added(kind: str) -> None:
    """Refuse an engine that no package provides.

    Raises:
        NoEngine: the engine is unknown, or its package is broken.
    """
    try:
        found = plugin("engine", kind)
    except UsageError as error:
        raise NoEngine(str(error)) from error
    if found is None:
        known = (*ENGINES, *added("engine"))
        hint = nearest(kind, known)
        remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(known)}."
        raise NoEngine(f"Unknown engine {kind!r}.", remedy)


def _has_code(choice: EngineChoice | None) -> bool:
    return choice is not None and bool(choice.file or choice.function)


def _refuse_code(choice: EngineChoice | None) -> None:
    if choice is not None and _has_code(choice):
        reads = "reads script.yaml; it" if choice.type == "scripted" else "asks a model; it"
        message = f"The {choice.type} engine {reads} takes no file or function."
        raise NoEngine(message, "Remove them, or choose the functions engine.")


def _function(choice: EngineChoice | None, modules: Any) -> Callable[..., Any]:
    """Load the function that an engine calls, or that creates the agent.

    Raises:
        NoEngine: `file` or `function` is missing.
        DefinitionError: the function does not exist.
    """
    if choice is None or not (choice.file and choice.function):
        kind = choice.type if choice else "functions"
        message = f"The {kind} engine needs `file` and `function`."
        raise NoEngine(message, "Add both.")
    return modules.function(choice.file, choice.function)
