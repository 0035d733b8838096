"""Read a JSON value from a model's text, and say what is wrong with it."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_array, as_object, said
from turnloom.variables.logic.types import is_json

# Deeper values are refused, as deeper files are.
MAX_DEPTH = 64
_LINES = 10
_WIDTH = 240


def unusable(value: Json) -> str | None:
    """Why no model can take a value, whatever it declares: it is no JSON, or too deep."""
    if any(depth > MAX_DEPTH for depth, _ in enumerate(_levels(value))):
        return f"The value is nested deeper than {MAX_DEPTH} levels."
    return None if is_json(value) else "The value is not JSON."


def size_of(value: Json) -> int:
    """How many values a value holds, itself included."""
    return sum(map(len, _levels(value)))


def _levels(value: Json) -> Iterator[list[Json]]:
    """The value, what it holds, what that holds, and so on; none of it by recursion."""
    level = [value]
    while level:
        yield level
        level = [part for each in level for part in _parts(each)]


def _parts(value: Json) -> Iterable[Json]:
    mapping = as_object(value)
    return mapping.values() if mapping is not None else as_array(value) or ()


def told(faults: Sequence[tuple[Path, str]]) -> str:
    """Faults at their places, a line each; of many the first, and each of them cut."""
    lines = [_cut(f"{_place(path)}: {message}") for path, message in faults[:_LINES]]
    if len(faults) > _LINES:
        lines.append(f"… and {len(faults) - _LINES} more.")
    return "\n".join(lines)


def _place(path: Path) -> str:
    """Where a value stands: `steps[2].title`, and `pet(Cat).name` when it was taken as a Cat."""
    steps = (f"[{step}]" if isinstance(step, int) else _step(step) for step in path)
    place = "".join(steps).removeprefix(".")
    return f"`{place}`" if place else "The value"


def _step(step: str) -> str:
    return step if step.startswith("(") else f".{step}"


def _cut(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


_FENCE = "```"


def read_output(text: str) -> Json:
    """The value of a text that is JSON, or that holds one block of it between fences.

    Raises:
        ValueError: there is no such value, or more than one; the message says why.
    """
    try:
        return _decoded(text.strip())
    except ValueError as error:
        blocks = list(_blocks(text))
        if not blocks:
            message = f"The answer is neither JSON nor holds a {_FENCE}json block: {error}"
            raise ValueError(message) from error
    marked = [body for label, body in blocks if label == "json"]
    bodies = marked or [body for label, body in blocks if not label]
    if len(bodies) != 1:
        raise ValueError(f"The answer holds {len(bodies)} blocks of JSON; it must hold one.")
    try:
        return _decoded(bodies[0])
    except ValueError as error:
        raise ValueError(f"The block in the answer is not JSON: {error}") from error


def _decoded(text: str) -> Json:
    try:
        value = msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("It is nested too deeply.") from error
    except ValueError as error:
        raise ValueError(f"{said(error)}.") from error
    if problem := unusable(value):
        raise ValueError(problem)
    return value


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The label and the body of each closed block, in one pass over the lines."""
    fence, label, body = "", "", list[str]()
    for line in text.split("\n"):  # other line breaks may stand inside of JSON
        mark = line.strip()
        if not fence:
            if mark.startswith(_FENCE):
                label = mark.lstrip("`").strip().lower()
                fence, body = mark[: len(mark) - len(mark.lstrip("`"))], []
        elif mark.startswith(fence) and not mark.strip("`"):
            yield label, "\n".join(body)
            fence = ""
        else:
            body.append(line)
