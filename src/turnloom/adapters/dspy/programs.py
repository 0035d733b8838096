"""An engine that lets a DSPy program take the turn."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from anyio import to_thread
from dspy import LM, Module, Prediction, context
from dspy.lm15 import Message, Request, Response, TextPart
from dspy.lm15 import Usage as Tokens
from dspy.utils.exceptions import DSPyError, LMError
from pydantic_core import to_jsonable_python

from turnloom.adapters.dspy.engine import (
    ask,
    describe,
    failure,
    may_pass,
    model_of,
    refusal_of,
    text_of,
    usage_of,
)
from turnloom.adapters.dspy.models import DspyModels, Model, named
from turnloom.adapters.dspy.signatures import (
    ANSWER,
    added_to,
    exchanged,
    fields_of,
    held_by,
    signature_of,
)
from turnloom.agents.logic.endings import stop_of
from turnloom.agents.logic.outputs.forms import given_output
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, OutputSchema, Patience, Task, Usage
from turnloom.errors import EngineError, TurnloomError, UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.threads import in_thread, threads
from turnloom.kernel.values import Json, as_data, as_object, preview, said

# Parameters of these names get the run's variables.
INJECTED = ("context_variables", "ctx")


class PreparedProgram(NamedTuple):
    """A program for one task: its inputs, and what goes before its instructions."""

    module: Module
    inputs: Mapping[str, Any]
    before: str = ""


class Maker:
    """What makes programs: `make` is given a signature if it has a parameter for one, and the run's
    variables if it has one for them.

    Raises:
        UsageError: it needs more than that.
    """

    def __init__(self, make: Callable[..., Module]) -> None:
        self._make = make
        self._signature, self._injected = _parameters(make)

    def made(self, task: Task) -> PreparedProgram:
        """The program for a task, made anew.

        Raises:
            UsageError: it is none, or the task cannot fill its inputs.
        """
        own = dict.fromkeys(self._injected, task.variables)
        if self._signature:
            signature, inputs = signature_of(task)
            given = {self._signature: signature, **own}
            return PreparedProgram(_checked(task, self._make(**given)), inputs)
        module = _checked(task, self._make(**own))
        inputs = dict(_filled(task, module))
        return PreparedProgram(module, inputs, "\n\n".join(_untaken(task, inputs)))


def _parameters(make: Callable[..., Module]) -> tuple[str, list[str]]:
    """The parameters of `make` for a signature, if it has one, and for the run's variables.

    Raises:
        UsageError: it needs more than that.
    """
    names = {
        each.name: each.default is each.empty
        for each in inspect.signature(_plain(make)).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }
    needed = [name for name, is_needed in names.items() if is_needed and name not in INJECTED]
    if len(needed) > 1:
        raise UsageError(
            f"What makes a program is given a signature, and not {', '.join(needed[1:])!r} too. "
            "Give a function that fills in the rest: `lambda signature: dspy.ReAct(signature, …)`."
        )
    return "".join(needed), [name for name in names if name in INJECTED]


def _plain(make: Callable[..., Module]) -> Callable[..., Any]:
    """What has the signature of `make`: that of DSPy's classes is hidden by their own class."""
    filled = partial(make)  # which is flat, if it was one already
    if not inspect.isclass(filled.func):
        return make
    begin: Any = filled.func.__init__
    return partial(begin, None, *filled.args, **filled.keywords)


def _checked(task: Task, module: Any) -> Module:
    """The program, if it is one that asks the models that it is told to ask."""
    if not isinstance(module, Module):
        gave = f"What makes the program of {task.agent!r} gave {preview(module)}."
        raise UsageError(f"{gave} Let it give a dspy.Module.")
    for name, predictor in module.named_predictors():
        if predictor.lm is not None:
            raise UsageError(
                f"{name!r} in the program of {task.agent!r} has a model of its own, which would be "
                "asked past the record. Say `program.set_lm(None)`, and name the model for the "
                "agent or the engine."
            )
    return module


def _filled(task: Task, module: Module) -> Iterator[tuple[str, Any]]:
    """The inputs of a program with its own signature, by their names."""
    held = held_by(task)
    for name, is_needed in _inputs(task, module).items():
        if name in held:
            yield name, held[name]
        elif is_needed:
            raise UsageError(
                f"The program of {task.agent!r} has an input {name!r}, and the task holds none of "
                f"that name. Call it one of: {', '.join(held)}; or give it a default."
            )


def _untaken(task: Task, inputs: Mapping[str, Any]) -> Iterator[str]:
    """What a program is to know, and has no input for: who it is, and what it did wrong before."""
    if task.system and "system" not in inputs:
        yield task.system
    if "conversation" not in inputs:
        yield from exchanged(task)


def _inputs(task: Task, module: Module) -> Mapping[str, bool]:
    """The inputs of a program, and which of them it needs: as `forward` names them, or else as the
    signature does."""
    # DSPy warns of whoever looks at `forward` of the module itself.
    forward: Any = getattr(type(module), "aforward", None) or type(module).forward
    _, *parameters = inspect.signature(forward).parameters.values()
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        return {each.name: each.default is each.empty for each in parameters}
    within = {each.signature for each in module.predictors()}
    signature = getattr(module, "signature", None) or (within.pop() if len(within) == 1 else None)
    if signature is None:
        raise UsageError(
            f"What the program of {task.agent!r} takes is not clear. Let its `forward` name its "
            "parameters."
        )
    return {name: field.is_required() for name, field in signature.input_fields.items()}


class Wire:
    """An engine of DSPy for one call of ours, with what went over it.

    What a model answered is on record at once, where the run's variables are: a program that
    is entered again hears it again. `before` goes before the instructions of each request.
    """

    def __init__(
        self, task: Task, name: str, model: Model, patience: Patience, before: str
    ) -> None:
        self.usage = Usage()
        self.model = self.ends = self.refusal = ""
        self.shown: list[str] = []
        self.trouble: TurnloomError | None = None
        self._task = task
        self._asked = model
        self._patience = patience
        self._name = name
        self._before = before
        self._counted: Counter[str] = Counter()
        self._threads = _Threads(self)

    def lm(self) -> LM:
        """The model as programs ask it, in the loop or from threads."""
        name = self._asked.name
        return LM(name, engine=self._threads, async_engine=self, cache=False, num_retries=0)

    async def complete(self, request: Request) -> Response:
        """The answer to a request: on record, or asked for with patience."""
        if self._before:
            system = f"{self._before}\n\n{_joined(request.system)}".strip()
            request = replace(request, system=system)
        self.shown += filter(None, (_joined(request.system), *map(_text, request.messages)))
        given = await self._once(request)
        usage = Usage(given["input_tokens"], given["output_tokens"])
        self.usage += usage
        self.model, self.ends = given["model"], given["ends"]
        self.refusal = given.get("refusal", "")
        message = Message("assistant", (TextPart(given["text"]),))
        tokens = Tokens(usage.input_tokens, usage.output_tokens)
        return Response(None, self.model, message, given["ends"], tokens)

    async def _once(self, request: Request) -> Any:
        effect = partial(self._answer, request)
        if self._task.variables is None:
            return await effect()
        name = digest(repr(request))
        self._counted[name] += 1
        return await self._task.variables.once(f"model:{name}#{self._counted[name]}", effect)

    async def _answer(self, request: Request) -> Json:
        trying = attempts(self._task, self._patience, may_pass, describe)
        try:
            response: Response = await trying(partial(ask, self._asked.lm, request))
        except (LMError, TimeoutError) as error:
            tried = trying.statistics["attempt_number"]
            self.trouble = failure(error, self._name, tried, self._patience)
            raise
        usage = usage_of(response)
        return {
            "text": text_of(response),
            "model": model_of(response),
            "ends": response.finish_reason,
            "refusal": refusal_of(response),
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }

    def cut(self) -> None:
        """Let go of what threads of the program still wait for."""
        self._threads.cut()


class _Threads:
    """A wire as threads use it, which may wait."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[Any] | None] = set()
        self._is_cut = False

    def complete(self, request: Request) -> Response:
        """The answer to a request."""
        return asyncio.run_coroutine_threadsafe(self._completed(request), self._loop).result()

    async def _completed(self, request: Request) -> Response:
        if self._is_cut:
            raise EngineError("The call of this program is over.")
        task = asyncio.current_task()
        self._under_way.add(task)
        try:
            return await self._wire.complete(request)
        finally:
            self._under_way.discard(task)

    def cut(self) -> None:
        """Give up what is under way, and all that follows."""
        self._is_cut = True
        for task in filter(None, self._under_way):
            task.cancel()


def _text(message: Message) -> str:
    return _joined(message.parts)


def _joined(parts: Any) -> str:
    """Instructions or parts of a message as one text."""
    if parts is None or isinstance(parts, str):
        return parts or ""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


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
        self._models = DspyModels(base_url, api_key, self._patience.timeout, are_kept=keep_open)
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
            wire = Wire(task, name, model, self._patience, before=made.before)
            try:
                given = await self._called(made, wire)
            except LMError as error:
                raise wire.trouble or EngineError(said(error)) from error
            except DSPyError as error:
                raise EngineError(f"The program of {task.agent!r} failed: {said(error)}") from error
            finally:
                wire.cut()
        return _answer(task, given, wire)

    async def _called(self, made: PreparedProgram, wire: Wire) -> Any:
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
