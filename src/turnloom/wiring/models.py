"""Engines of models, by model name."""

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from turnloom.agents.spec import Answer, Engine, Task
from turnloom.assembly.spec import ChosenProvider
from turnloom.errors import UsageError
from turnloom.kernel.values import nearest
from turnloom.runtime.spec import AgentRuntime
from turnloom.wiring.adapters import adapter
from turnloom.wiring.schemes import added, plugin

# Name of the model on this machine, which needs no provider and no network.
LOCAL = "local"


class LocalEngine:
    """Engine of the model on this machine. `make` creates the underlying engine; both start with
    the first task."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._model = adapter("xllamacpp").LocalModel()
        self._make = make
        self._engine: Any = None
        self._making = anyio.Lock()

    async def __call__(self, task: Task) -> Answer:
        """Return the answer of the model."""
        async with self._making:
            if self._engine is None:
                self._engine = self._make(LOCAL, base_url=await self._model.url(), keep_open=True)
        return await self._engine(task)

    def context_window(self, model: str | None) -> int:
        """Size of the model's context window in tokens."""
        return self._model.context_window

    async def aclose(self) -> None:
        """Stop the model."""
        if self._engine is not None:
            await self._engine.aclose()
        await self._model.aclose()


# Default kind of engine for a named model.
MODELS = "pydantic_ai"

# Engine classes for models.
ASKING = {
    MODELS: "PydanticAIEngine",
    "ag2": "AG2Engine",
    "autogen": "AutogenEngine",
    "dspy": "DSPyEngine",
}

# Engine classes for agents or programs of other libraries, which a function creates.
TAKING = {
    "ag2": "AG2AgentEngine",
    "autogen": "ConversableAgentEngine",
    "dspy": "DSPyProgramEngine",
}


def own_contexts(engines: Sequence[Engine]) -> tuple[ChosenProvider | None, ...]:
    """Context providers that engines define in `context_provider`."""
    own = [getattr(engine, "context_provider", None) for engine in engines]
    return tuple(None if each is None else ChosenProvider(each) for each in own)


class NoEngine(Exception):
    """No engine is available for an agent."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def check_engine(kind: str) -> None:
    """Refuse an unknown kind of engine.

    Raises:
        UsageError: the engine is unknown, or its package is broken.
    """
    if kind in ASKING or plugin("engine", kind) is not None:
        return
    known = (*ASKING, *added("engine"))
    hint = nearest(kind, known)
    remedy = f"Did you mean {hint!r}?" if hint else f"Known: {', '.join(known)}."
    raise UsageError(f"Unknown model engine {kind!r}. {remedy}")


class ModelEngines:
    """Model engines of an app. `default` is the default model, `kind` the default kind of engine,
    and `given` names those of both that the program set itself.

    Raises:
        UsageError: the engine is unknown.
    """

    def __init__(self, default: str = "", kind: str = MODELS, given: Collection[str] = ()) -> None:
        check_engine(kind)
        self.default = default
        self.kind = kind
        self._given = given
        self._made: dict[tuple[str, str], Any] = {}
        self._taking: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()

    def engine(self, model: str, kind: str = "") -> Engine:
        """Return the engine of a model; agents share it.

        Raises:
            NoEngine: the engine cannot be created.
        """
        kind = kind or self.kind
        if (kind, model) not in self._made:
            try:
                self._made[kind, model] = _make_engine(kind, model)
            except UsageError as error:
                raise NoEngine(str(error)) from error
        return self._made[kind, model]

    def common(self) -> Engine | None:
        """Default engine, if the settings define one. Engines of packages need no model.

        Raises:
            NoEngine: the engine cannot be created.
        """
        return self.answering(self.default) if self.default or self.kind not in ASKING else None

    def taking(self, make: Callable[..., Any], kind: str) -> Engine:
        """Return an engine for agents or programs of another library, which `make` creates. Agents
        of AG2's classic line have their own models; others use the default if they name none.

        Raises:
            NoEngine: the library is not installed, or the model is unavailable.
        """
        model = {} if kind == "autogen" else {"model": self.default or None}
        try:
            made = getattr(adapter(kind), TAKING[kind])(make, **model)
        except UsageError as error:
            raise NoEngine(str(error)) from error
        self._taking[made] = (kind, self.default if model else "")
        return made

    def answering(self, given: Any) -> Engine:
        """Return an engine for an engine, a function, or a model name.

        Raises:
            NoEngine: the engine of the model cannot be created.
        """
        if inspect.isroutine(given):
            return adapter("functions").FunctionEngine(given)
        return self.engine(given) if isinstance(given, str) else given

    def unheeded(self, staff: Iterable[AgentRuntime]) -> tuple[str, ...]:
        """Settings of the program that no agent uses: `model`, `engine`."""
        at_work = [engine for each in staff for engine in (*each.engines, *each.named.values())]
        keys = {id(made): key for key, made in self._made.items()}
        keys |= {id(made): key for made, key in self._taking.items()}
        asked = [keys[id(each)] for each in at_work if id(each) in keys]
        heeded = {"model": self.default in (model for _, model in asked)}
        heeded["engine"] = self.kind in (kind for kind, _ in asked)
        return tuple(name for name in self._given if not heeded[name])

    async def aclose(self) -> None:
        """Close the engines."""
        while self._made:
            engine = self._made.popitem()[1]
            if hasattr(engine, "aclose"):
                await engine.aclose()


class UnaskedModels(ModelEngines):
    """Placeholder for model engines in checks: `engine` replaces all of them."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._stand_in = engine

    def engine(self, model: str, kind: str = "") -> Engine:
        """Return the placeholder."""
        return self._stand_in


def _make_engine(kind: str, model: str) -> Any:
    """Create the engine of a model.

    Raises:
        UsageError: the engine or model is unknown, or a package is missing or broken.
    """
    make = plugin("engine", kind) if kind not in ASKING else None
    if make is not None:
        return make(model)
    check_engine(kind)
    ours = getattr(adapter(kind), ASKING[kind])
    return LocalEngine(ours) if model == LOCAL else ours(model, keep_open=True)
