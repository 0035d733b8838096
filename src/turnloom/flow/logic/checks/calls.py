"""Whether a flow was built in order: what comes first, last, once, and inside of what."""

from collections.abc import Iterator, Mapping

from turnloom.errors import Diagnostic
from turnloom.flow.logic.checks.problems import problem
from turnloom.flow.logic.plans import lines_of
from turnloom.flow.spec.declared import Declared, Misplaced
from turnloom.flow.spec.nodes import Line, Placed

# How many paths a path may be inside of: flows are checked, drawn and walked path in path.
DEEPEST = 100


def check_calls(declared: Declared) -> Iterator[Diagnostic]:
    """Whether every call came when it could."""
    early = [each for each in declared.misplaced if not each.after]
    for each in early[:1]:
        yield problem(
            each.site,
            "W101",
            f"Flow {declared.name!r} begins with `{each.call}`.",
            "Begin it with `start_with`.",
        )
    for each in declared.misplaced:
        if each.after:
            yield _late(declared.name, each)
    if not declared.main.nodes:
        message = f"Flow {declared.name!r} has no steps."
        yield problem(declared.main.site, "W104", message, "Add one with `start_with`.")


def _late(flow: str, misplaced: Misplaced) -> Diagnostic:
    call, site, after = misplaced
    if call == after:
        code = "W102" if call == "start_with" else "W103"
        remedy = "Use `then` for the other step." if code == "W102" else "Keep one of them."
        return problem(site, code, f"Flow {flow!r} has `{call}` twice.", remedy)
    message = f"In flow {flow!r}, `{call}` comes after `{after}`."
    return problem(site, "W103", message, f"Put it before `{after}`.")


def check_repeats(paths: Mapping[str, Placed]) -> Iterator[Diagnostic]:
    """Whether each path says once what can be said once, and none is a flow."""
    for placed in paths.values():
        for call, site in placed.line.again:
            yield problem(site, "W103", f"A path has `{call}` twice.", "Keep one of them.")
        if placed.line.flow is not None:
            message = (
                f"Flow {placed.line.flow!r} is given as a path. Its timeout, variables, hooks, "
                "guards and `on_failure` would be ignored."
            )
            yield problem(placed.line.site, "W130", message, "Give its steps: `Path(…)`.")


def check_nesting(declared: Declared) -> Iterator[Diagnostic]:
    """Whether a path contains itself, or so many others that nobody could follow them."""
    for line in (declared.main, declared.failure):
        if line is not None:
            yield from _nested(line, ())


def _nested(line: Line, around: tuple[int, ...]) -> Iterator[Diagnostic]:
    if id(line) in around:
        message = "A path is inside of itself."
        yield problem(line.site, "W115", message, "Build another path, or use `repeat_until`.")
        return
    if len(around) > DEEPEST:
        message = f"A path is inside of more than {DEEPEST} others."
        remedy = "Put cases side by side in one branch, or use `repeat_until`."
        yield problem(line.site, "W129", message, remedy)
        return
    inner = [each for node in line.nodes for _, _, each in lines_of(node)]
    for each in (*inner, *([line.handler] if line.handler is not None else [])):
        yield from _nested(each, (*around, id(line)))
