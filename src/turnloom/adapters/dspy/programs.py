"""An engine that lets a program of DSPy take the turn."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from anyio import to_thread
from dspy import Module, Prediction, context
from dspy.utils.exceptions import DSPyError, LMError
from pydantic_core import to_jsonable_python

from turnloom.adapters.dspy.holdings import added_to
from turnloom.adapters.dspy.making import Made, Maker
from turnloom.adapters.dspy.models import Models, named
from turnloom.adapters.dspy.signatures import ANSWER, fields_of
from turnloom.adapters.dspy.wires import Wire
from turnloom.agents.logic.endings import stop_of
from turnloom.agents.logic.outputs.forms import given_output
from turnloom.agents.spec import Answer, OutputSchema, Patience, Task
from turnloom.errors import EngineError, UsageError
from turnloom.kernel.threads import in_thread, threads
from turnloom.kernel.values import Json, as_data, as_object, preview, said

# How many programs that cannot be awaited are at work at once for a tenant, each in a thread.
THREADS = 256


class DSPyProgramEngine:
    """Has a program answer that `make` gives, anew for each call.

    A `make` with a parameter for it gets a signature made from the types of the task, as
    `dspy.ChainOfThought` does; the inputs of a program that has its own are filled by their names.
    The models inside it are named and reached as those of `DSPyEngine`.
    """

    takes_variables = True

    def __init__(
        self,
        make: Callable[..., Module],
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._maker = Maker(make)
        self._default = model
        self._patience = patience or Patience()
        self._models = Models(base_url, api_key, self._patience.timeout, are_kept=keep_open)
        if model is not None:
            self._models.made(model)  # whether it can be asked shows before a run starts

    async def __call__(self, task: Task) -> Answer:
        """What the program gives for the task.

        Raises:
            ContextTooLarge: what it asks does not fit into the window of its model.
            EngineError: its model does not answer, or not so that DSPy can read it.
            UsageError: it cannot be asked: for want of a model or an input, or as there are tools.
        """
        _refuse_tools(task)
        name = named(task, self._default)
        made = await to_thread.run_sync(self._maker.made, task, limiter=threads())
        async with self._models.opened(name) as model:
            wire = Wire(task, name, model, self._patience, made.before)
            try:
                given = await self._called(made, wire)
            except LMError as error:
                raise wire.trouble or EngineError(said(error)) from error
            except DSPyError as error:
                raise EngineError(f"The program of {task.agent!r} failed: {said(error)}") from error
            finally:
                wire.cut()
        return _answer(task, given, wire)

    async def _called(self, made: Made, wire: Wire) -> Any:
        """What a program gives: in the loop if it can be awaited, else in a thread. DSPy remembers
        nothing of it."""
        with context(lm=wire.lm(), send_stream=None, disable_history=True, trace=None):
            if hasattr(made.module, "aforward"):
                return await made.module.acall(**made.inputs)
            call = partial(made.module, **made.inputs)
            return await in_thread(call, threads("dspy", THREADS))

    async def aclose(self) -> None:
        """Part from the providers."""
        await self._models.aclose()


def _refuse_tools(task: Task) -> None:
    if task.tools:
        names = ", ".join(tool.name for tool in task.tools)
        raise UsageError(
            f"Agent {task.agent!r} has tools ({names}), and a program of DSPy calls tools inside "
            "itself, where no call is on record. Give the program its own tools where it is made, "
            "or choose `DSPyEngine` for this agent."
        )


def _answer(task: Task, given: Any, wire: Wire) -> Answer:
    """What a program gave, as an answer: a text, or an output of the form that is asked for."""
    fields = _fields(task, given)
    answer = partial(
        Answer,
        usage=wire.usage,
        model=wire.model,
        added=added_to(task, wire.shown),
        stop=stop_of(wire.ends, refusal=wire.refusal),
        refusal=wire.refusal,
    )
    if task.output is not None:
        return answer(output=_output(task.output, fields))
    told = fields[ANSWER if ANSWER in fields else [*fields][-1]]
    return answer(told if isinstance(told, str) else as_data(told))


def _fields(task: Task, given: Any) -> dict[str, Json]:
    """What a program gave, by the names of its outputs."""
    match given:
        case Prediction():
            fields: Any = dict(given.items())
        case str():
            fields = {ANSWER: given}
        case _:
            fields = given
    found = as_object(to_jsonable_python(fields))
    if not found:
        message = f"The program of {task.agent!r} gave {preview(given)}. Let it give a Prediction."
        raise EngineError(message)
    return found


def _output(output: OutputSchema, given: Mapping[str, Json]) -> Json:
    """The output that fields make; what may be left out and is nothing is left out."""
    asked = fields_of(output)
    if "" in asked:
        return given.get(asked[""].name)
    found = {
        key: given[field.name]
        for key, field in asked.items()
        if field.name in given and (field.is_required or given[field.name] is not None)
    }
    return given_output(output, "", found)
