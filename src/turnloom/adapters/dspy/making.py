"""Programs of DSPy for tasks, from whatever makes them."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from dspy import Module

from turnloom.adapters.dspy.holdings import exchanged, held_by
from turnloom.adapters.dspy.signatures import signature_of
from turnloom.agents.spec import Task
from turnloom.errors import UsageError
from turnloom.kernel.values import preview

# Parameters of these names get the run's variables.
INJECTED = ("context_variables", "ctx")


class Made(NamedTuple):
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

    def made(self, task: Task) -> Made:
        """The program for a task, made anew.

        Raises:
            UsageError: it is none, or the task cannot fill its inputs.
        """
        own = dict.fromkeys(self._injected, task.variables)
        if self._signature:
            signature, inputs = signature_of(task)
            given = {self._signature: signature, **own}
            return Made(_checked(task, self._make(**given)), inputs)
        module = _checked(task, self._make(**own))
        inputs = dict(_filled(task, module))
        return Made(module, inputs, "\n\n".join(_untaken(task, inputs)))


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
