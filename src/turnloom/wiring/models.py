"""Engines that ask models, by model name."""

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

# The name of the model that needs no provider and no network.
LOCAL = "local"


class LocalEngine:
    """Asks the model of this machine by an engine that `make` gives; both begin with the first
    task."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._model = adapter("xllamacpp").LocalModel()
        self._make = make
        self._engine: Any = None
        self._making = anyio.Lock()

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task."""
        async with self._making:
            if self._engine is None:
                self._engine = self._make(LOCAL, base_url=await self._model.url(), keep_open=True)
        return await self._engine(task)

    def context_window(self, model: str | None) -> int:
        """How many tokens fit into the window of the model."""
        return self._model.context_window

    async def aclose(self) -> None:
        """Stop the model."""
        if self._engine is not None:
            await self._engine.aclose()
        await self._model.aclose()


# The engine that asks a model which is named and nothing more.
MODELS = "pydantic_ai"

# The engines that ask models, and what makes one for a model.
ASKING = {
    MODELS: "PydanticAIEngine",
    "ag2": "AG2Engine",
    "autogen": "AutogenEngine",
    "dspy": "DSPyEngine",
}

# Those of them whose libraries have agents or programs, and what has one take turns that a function
# makes.
TAKING = {
    "ag2": "AG2AgentEngine",
    "autogen": "ConversableAgentEngine",
    "dspy": "DSPyProgramEngine",
}


def own_contexts(engines: Sequence[Engine]) -> tuple[ChosenProvider | None, ...]:
    """What gives each engine its context, where an engine has a `context_provider` of its own."""
    own = [getattr(engine, "context_provider", None) for engine in engines]
    return tuple(None if each is None else ChosenProvider(each) for each in own)


class NoEngine(Exception):
    """An agent that nothing makes answer."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def check_engine(kind: str) -> None:
    """Refuse an engine that is neither ours nor a package's.

    Raises:
        UsageError: there is no such engine, or its package is broken.
    """
    if kind in ASKING or plugin("engine", kind) is not None:
        return
    there_is = (*ASKING, *added("engine"))
    hint = nearest(kind, there_is)
    remedy = f"Did you mean {hint!r}?" if hint else f"There is: {', '.join(there_is)}."
    raise UsageError(f"Engine {kind!r} asks no models. {remedy}")


class ModelEngines:
    """The engines of an app that ask models; `default` is asked where no model is named, by the
    engine `kind` where none is chosen. The program itself chose those of both that are `given`.

    Raises:
        UsageError: there is no such engine.
    """

    def __init__(self, default: str = "", kind: str = MODELS, given: Collection[str] = ()) -> None:
        check_engine(kind)
        self.default = default
        self.kind = kind
        self._given = given
        self._made: dict[tuple[str, str], Any] = {}
        self._taking: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()

    def engine(self, model: str, kind: str = "") -> Engine:
        """The engine that asks a model; the agents of an app share it.

        Raises:
            Unanswered: it cannot be asked.
        """
        kind = kind or self.kind
        if (kind, model) not in self._made:
            try:
                self._made[kind, model] = _make_engine(kind, model)
            except UsageError as error:
                raise NoEngine(str(error)) from error
        return self._made[kind, model]

    def common(self) -> Engine | None:
        """The engine of agents that choose none and name no model, if the settings have one: a
        package's engine needs no model.

        Raises:
            Unanswered: it cannot be asked.
        """
        return self.answering(self.default) if self.default or self.kind not in ASKING else None

    def taking(self, make: Callable[..., Any], kind: str) -> Engine:
        """The engine in which what a function makes takes turns; agents of the classic line bring
        their models, others are given the default one where they and the workflow name none.

        Raises:
            Unanswered: its library is not installed, or the model cannot be asked.
        """
        model = {} if kind == "autogen" else {"model": self.default or None}
        try:
            made = getattr(adapter(kind), TAKING[kind])(make, **model)
        except UsageError as error:
            raise NoEngine(str(error)) from error
        self._taking[made] = (kind, self.default if model else "")
        return made

    def answering(self, given: Any) -> Engine:
        """An engine, a function that answers as one, or a model by its name.

        Raises:
            Unanswered: the model cannot be asked.
        """
        if inspect.isroutine(given):
            return adapter("functions").FunctionEngine(given)
        return self.engine(given) if isinstance(given, str) else given

    def unheeded(self, staff: Iterable[AgentRuntime]) -> tuple[str, ...]:
        """What the program chose, and makes no difference to who answers: `model`, `engine`."""
        at_work = [engine for each in staff for engine in (*each.engines, *each.named.values())]
        keys = {id(made): key for key, made in self._made.items()}
        keys |= {id(made): key for made, key in self._taking.items()}
        asked = [keys[id(each)] for each in at_work if id(each) in keys]
        heeded = {"model": self.default in (model for _, model in asked)}
        heeded["engine"] = self.kind in (kind for kind, _ in asked)
        return tuple(name for name in self._given if not heeded[name])

    async def aclose(self) -> None:
        """Part from the providers."""
        while self._made:
            engine = self._made.popitem()[1]
            if hasattr(engine, "aclose"):
                await engine.aclose()


class UnaskedModels(ModelEngines):
    """Models where a definition is only looked at: `engine` stands for all of them."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._stand_in = engine

    def engine(self, model: str, kind: str = "") -> Engine:
        """What stands for the model."""
        return self._stand_in


def _make_engine(kind: str, model: str) -> Any:
    """An engine that asks a model.

    Raises:
        UsageError: there is no such engine or model, or a package is missing or broken.
    """
    make = plugin("engine", kind) if kind not in ASKING else None
    if make is not None:
        return make(model)
    check_engine(kind)
    ours = getattr(adapter(kind), ASKING[kind])
    return LocalEngine(ours) if model == LOCAL else ours(model, keep_open=True)
