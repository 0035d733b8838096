"""Whether the sources of steps can give what they name."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from turnloom.assembly.logic.checking import as_sources, check_sources
from turnloom.assembly.spec.formats import Budget
from turnloom.errors import Diagnostic, UsageError
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.spec.nodes import StepNode
from turnloom.kernel.values import as_array, as_object, preview
from turnloom.variables.spec import BAKED_IN, BASE


def check_context(node: StepNode, state: Any, variables: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Whether the sources of a step name what the state and the variables have."""
    given: object = node.context
    if not isinstance(given, list | tuple):
        message = f"`context` of step {node.name!r} is {preview(given)}."
        yield problem(node.site, "W126", message, "Give a list of sources.")
        return
    try:
        sources = as_sources(node.context)
    except UsageError as error:
        message, _, remedy = str(error).partition(". ")
        yield problem(node.site, "W126", f"Step {node.name!r}: {message}.", remedy)
        return
    budget = node.budget if isinstance(cast(object, node.budget), Budget) else None
    for trouble in check_sources(sources, state, _names(variables), budget=budget):
        message = f"Step {node.name!r}, {trouble.message}"
        yield problem(node.site, trouble.code, message, trouble.remedy)


def _names(variables: Mapping[str, Any]) -> list[str]:
    """The variables that there are."""
    return [*BASE, *BAKED_IN, *definitions_in(variables)]


def definitions_in(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of variables by name, however they are declared."""
    outer = as_object(variables.get("context_variables", variables)) or {}
    declared = outer.get("definitions")
    listed = [as_object(each) or {} for each in as_array(declared) or ()]
    return as_object(declared) or {each["name"]: each for each in listed if "name" in each}
