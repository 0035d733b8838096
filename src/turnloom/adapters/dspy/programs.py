"""Engine in which a DSPy program takes the turn."""

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
from msgspec import convert
from msgspec.structs import asdict
from pydantic_core import to_jsonable_python

from turnloom.adapters.dspy.engine import (
    ask,
    describe,
    failure,
    is_transient,
    model_of,
    refusal_of,
    text_of,
    usage_of,
)
from turnloom.adapters.dspy.models import DspyModels, Model, model_name
from turnloom.adapters.dspy.signatures import (
    ANSWER,
    added_to,
    corrections,
    fields_of,
    inputs_of,
    signature_of,
)
from turnloom.agents.logic.endings import stop_of
from turnloom.agents.logic.outputs.forms import given_output
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Answer, OutputSchema, Patience, Task, Usage
from turnloom.errors import EngineError, TurnloomError, UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.threads import in_thread, threads
from turnloom.kernel.values import Json, as_data, as_object, error_text, preview

# Parameters with these names receive the run's variables.
INJECTED = ("context_variables", "ctx")


class PreparedProgram(NamedTuple):
    """A program for one task, with its inputs and a preamble for its instructions."""

    module: Module
    inputs: Mapping[str, Any]
    preamble: str = ""


class ProgramFactory:
    """Creates programs. `make` receives a signature and the run's variables if it has parameters
    for them.

    Raises:
        UsageError: `make` requires other parameters.
    """

    def __init__(self, make: Callable[..., Module]) -> None:
        self._make = make
        self._signature, self._injected = _parameters(make)

    def create(self, task: Task) -> PreparedProgram:
        """Create the program for a task.

        Raises:
            UsageError: `make` returns no `dspy.Module`, or the task has no value for an input.
        """
        own = dict.fromkeys(self._injected, task.variables)
        if self._signature:
            signature, inputs = signature_of(task)
            given = {self._signature: signature, **own}
            return PreparedProgram(_checked(task, self._make(**given)), inputs)
        module = _checked(task, self._make(**own))
        inputs = dict(_named_inputs(task, module))
        return PreparedProgram(module, inputs, "\n\n".join(_preamble_of(task, inputs)))


def _parameters(make: Callable[..., Module]) -> tuple[str, list[str]]:
    """The parameters of `make` for a signature, if any, and for the run's variables.

    Raises:
        UsageError: `make` requires other parameters.
    """
    names = {
        each.name: each.default is each.empty
        for each in inspect.signature(_inspectable(make)).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }
    needed = [name for name, is_needed in names.items() if is_needed and name not in INJECTED]
    if len(needed) > 1:
        raise UsageError(
            "`make` may require one parameter, a signature, but also requires "
            f"{', '.join(map(repr, needed[1:]))}. Wrap it: "
            "`lambda signature: dspy.ReAct(signature, …)`."
        )
    return "".join(needed), [name for name in names if name in INJECTED]


def _inspectable(make: Callable[..., Module]) -> Callable[..., Any]:
    """A callable with the real signature of `make`; DSPy's metaclass hides those of its classes."""
    filled = partial(make)  # flattens nested partials
    if not inspect.isclass(filled.func):
        return make
    begin: Any = filled.func.__init__
    return partial(begin, None, *filled.args, **filled.keywords)


def _checked(task: Task, module: Any) -> Module:
    """The program, if it is a module whose predictors have no model."""
    if not isinstance(module, Module):
        gave = f"`make` returned {preview(module)} for agent {task.agent!r}."
        raise UsageError(f"{gave} Return a dspy.Module.")
    for name, predictor in module.named_predictors():
        if predictor.lm is not None:
            raise UsageError(
                f"Predictor {name!r} of agent {task.agent!r} has its own model, whose calls would "
                "not be recorded. Call `program.set_lm(None)`, and set the model of the agent or "
                "the engine."
            )
    return module


def _named_inputs(task: Task, module: Module) -> Iterator[tuple[str, Any]]:
    """The inputs of a program that has its own signature, matched by name."""
    inputs = inputs_of(task)
    for name, is_needed in _inputs(task, module).items():
        if name in inputs:
            yield name, inputs[name]
        elif is_needed:
            raise UsageError(
                f"The program of {task.agent!r} requires an input {name!r}, which the task does "
                f"not have. Rename it to one of: {', '.join(inputs)}; or give it a default."
            )


def _preamble_of(task: Task, inputs: Mapping[str, Any]) -> Iterator[str]:
    """What the program has no input for: its system prompt, and corrections to earlier answers."""
    if task.system and "system" not in inputs:
        yield task.system
    if "conversation" not in inputs:
        yield from corrections(task)


def _inputs(task: Task, module: Module) -> Mapping[str, bool]:
    """The inputs of a program, and whether each is required: by its `forward`, or else by its
    signature."""
    # DSPy warns when `forward` is read from the instance.
    forward: Any = getattr(type(module), "aforward", None) or type(module).forward
    _, *parameters = inspect.signature(forward).parameters.values()
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        return {each.name: each.default is each.empty for each in parameters}
    within = {each.signature for each in module.predictors()}
    signature = getattr(module, "signature", None) or (within.pop() if len(within) == 1 else None)
    if signature is None:
        raise UsageError(
            f"Cannot tell the inputs of the program of {task.agent!r}. Name the parameters of its "
            "`forward`."
        )
    return {name: field.is_required() for name, field in signature.input_fields.items()}


class RecordingEngine:
    """DSPy engine that records the model calls of one program.

    Each answer is recorded at once if the run has variables, so a program that is called again gets
    the same answers. `preamble` precedes the instructions of each request.
    """

    def __init__(
        self, task: Task, name: str, model: Model, patience: Patience, preamble: str
    ) -> None:
        self.usage = Usage()
        self.model = self.ends = self.refusal = ""
        self.shown: list[str] = []
        self.error: TurnloomError | None = None
        self._task = task
        self._asked = model
        self._patience = patience
        self._name = name
        self._preamble = preamble
        self._counted: Counter[str] = Counter()
        self._blocking = _BlockingEngine(self)

    def lm(self) -> LM:
        """The model as programs call it, from the event loop or from threads."""
        name = self._asked.name
        return LM(name, engine=self._blocking, async_engine=self, cache=False, num_retries=0)

    async def complete(self, request: Request) -> Response:
        """The recorded answer to a request, or else a new one with retries."""
        if self._preamble:
            system = f"{self._preamble}\n\n{_joined(request.system)}".strip()
            request = replace(request, system=system)
        self.shown += filter(None, (_joined(request.system), *map(_text, request.messages)))
        given = await self._once(request)
        usage = convert({key: given.get(key, 0) for key in Usage.__struct_fields__}, Usage)
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
        trying = attempts(self._task, self._patience, is_transient, describe)
        try:
            response: Response = await trying(partial(ask, self._asked.lm, request))
        except (LMError, TimeoutError) as error:
            tried = trying.statistics["attempt_number"]
            self.error = failure(error, self._name, tried, self._patience)
            raise
        usage = usage_of(response, self._asked.name)
        return {
            "text": text_of(response),
            "model": model_of(response),
            "ends": response.finish_reason,
            "refusal": refusal_of(response),
            **asdict(usage),
        }

    def cancel(self) -> None:
        """Cancel the requests that threads of the program wait for."""
        self._blocking.cancel()


class _BlockingEngine:
    """Synchronous interface for threads."""

    def __init__(self, recording: RecordingEngine) -> None:
        self._engine = recording
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Task[Any] | None] = set()
        self._is_cancelled = False

    def complete(self, request: Request) -> Response:
        """The answer to a request."""
        return asyncio.run_coroutine_threadsafe(self._completed(request), self._loop).result()

    async def _completed(self, request: Request) -> Response:
        if self._is_cancelled:
            raise EngineError("The call of this program has ended.")
        task = asyncio.current_task()
        self._under_way.add(task)
        try:
            return await self._engine.complete(request)
        finally:
            self._under_way.discard(task)

    def cancel(self) -> None:
        """Cancel running requests, and refuse later ones."""
        self._is_cancelled = True
        for task in filter(None, self._under_way):
            task.cancel()


def _text(message: Message) -> str:
    return _joined(message.parts)


def _joined(parts: Any) -> str:
    """Instructions, or the parts of a message, as one text."""
    if parts is None or isinstance(parts, str):
        return parts or ""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


# How many synchronous programs run at once per tenant, each in a thread.
THREADS = 256


class DSPyProgramEngine:
    """Answers with a DSPy program, which `make` creates for each call.

    If `make` takes a signature, as `dspy.ChainOfThought` does, it receives one made from the types
    of the task. Otherwise, the program's own inputs are filled by name. Model names are those of
    `DSPyEngine`.
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
        self._factory = ProgramFactory(make)
        self._default = model
        self._patience = patience or Patience()
        self._models = DspyModels(base_url, api_key, self._patience.timeout, keep_open=keep_open)
        if model is not None:
            self._models.create(model)  # reports a missing key before a run starts

    async def __call__(self, task: Task) -> Answer:
        """The program's answer to a task.

        Raises:
            ContextTooLarge: a request exceeds the context window of the model.
            EngineError: the model fails, or DSPy cannot parse its answer.
            UsageError: a model or an input is missing, or the agent has tools.
        """
        _refuse_tools(task)
        name = model_name(task, self._default)
        program = await to_thread.run_sync(self._factory.create, task, limiter=threads())
        async with self._models.open(name) as model:
            recording = RecordingEngine(
                task, name, model, self._patience, preamble=program.preamble
            )
            try:
                given = await self._call(program, recording)
            except LMError as error:
                raise recording.error or EngineError(error_text(error)) from error
            except DSPyError as error:
                raise EngineError(
                    f"The program of {task.agent!r} failed: {error_text(error)}"
                ) from error
            finally:
                recording.cancel()
        return _answer(task, given, recording)

    async def _call(self, program: PreparedProgram, recording: RecordingEngine) -> Any:
        """Run the program: async ones in the event loop, others in a thread. DSPy keeps no
        history."""
        with context(lm=recording.lm(), send_stream=None, disable_history=True, trace=None):
            if hasattr(program.module, "aforward"):
                return await program.module.acall(**program.inputs)
            call = partial(program.module, **program.inputs)
            return await in_thread(call, threads("dspy", THREADS))

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._models.aclose()


def _refuse_tools(task: Task) -> None:
    if task.tools:
        names = ", ".join(tool.name for tool in task.tools)
        raise UsageError(
            f"Agent {task.agent!r} has tools ({names}), but a DSPy program calls its tools itself, "
            "and those calls are not recorded. Give the tools to the program in `make`, or use "
            "`DSPyEngine` for this agent."
        )


def _answer(task: Task, given: Any, recording: RecordingEngine) -> Answer:
    """The program's result as an answer: a text, or an output that fits the task's schema."""
    fields = _fields(task, given)
    answer = partial(
        Answer,
        usage=recording.usage,
        model=recording.model,
        added=added_to(task, recording.shown),
        stop=stop_of(recording.ends, refusal=recording.refusal),
        refusal=recording.refusal,
    )
    if task.output is not None:
        return answer(output=_output(task.output, fields))
    value = fields[ANSWER if ANSWER in fields else [*fields][-1]]
    return answer(value if isinstance(value, str) else as_data(value))


def _fields(task: Task, given: Any) -> dict[str, Json]:
    """The program's result by output name."""
    match given:
        case Prediction():
            fields: Any = dict(given.items())
        case str():
            fields = {ANSWER: given}
        case _:
            fields = given
    found = as_object(to_jsonable_python(fields))
    if not found:
        message = f"The program of {task.agent!r} returned {preview(given)}. Return a Prediction."
        raise EngineError(message)
    return found


def _output(output: OutputSchema, given: Mapping[str, Json]) -> Json:
    """The output made from fields, without optional ones that are None."""
    asked = fields_of(output)
    if "" in asked:
        return given.get(asked[""].name)
    found = {
        key: given[field.name]
        for key, field in asked.items()
        if field.name in given and (field.is_required or given[field.name] is not None)
    }
    return given_output(output, "", found)
