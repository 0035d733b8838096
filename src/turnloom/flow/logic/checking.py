"""The check of a flow: all problems at once, at the lines of the builder calls."""

from collections.abc import Iterator

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.models import as_model, check_migrate, check_model
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.checks.settings import (
    check_cache,
    check_context,
    check_effects,
    check_timeout,
    check_values,
)
from turnloom.flow.logic.checks.shapes import (
    check_approvals,
    check_calls,
    check_nesting,
    check_reach,
    check_repeats,
    check_shapes,
    ends,
)
from turnloom.flow.logic.checks.steps import check_name, check_names, check_step, check_writes
from turnloom.flow.logic.plans import placed_lines, steps_of
from turnloom.flow.spec.nodes import DeclaredFlow


def check(declared: DeclaredFlow) -> list[Diagnostic]:
    """Every problem of a flow, in the order of its lines."""
    tangled = [*check_nesting(declared)]
    inside = tangled or _check_paths(declared)
    return sorted({*_check_flow(declared), *inside})


def _check_flow(declared: DeclaredFlow) -> Iterator[Diagnostic]:
    """Problems of the flow as a whole."""
    site = declared.main.site
    yield from check_name(declared.name, site, "the flow")
    yield from check_calls(declared)
    yield from check_model(declared.state, site)
    yield from check_migrate(declared.migrate, site)
    yield from check_timeout(f"`timeout` of flow {declared.name!r}", declared.timeout, site)


def _check_paths(declared: DeclaredFlow) -> Iterator[Diagnostic]:
    """Problems of the paths of a flow whose nesting is finite."""
    paths = placed_lines(declared.main, declared.failure)
    model = as_model(declared.state)
    yield from check_repeats(paths)
    yield from check_names(paths)
    yield from check_shapes(paths, model)
    yield from check_reach(paths, model)
    yield from check_approvals(paths, model)
    yield from check_effects(paths)
    for node in steps_of(paths):
        yield from check_step(node)
        yield from check_values(node)
        yield from check_cache(node, declared.variables)
        yield from check_context(node, model, declared.variables)
    if model is not None:
        yield from check_writes(paths, model)
    if declared.main.nodes and not declared.is_ended and not ends(declared.main, model):
        message = f"Flow {declared.name!r} has no `finally_`; it ends after its last step."
        yield problem(
            declared.main.site,
            "W105",
            message,
            "Add the last step with `finally_`.",
            severity="warning",
        )
