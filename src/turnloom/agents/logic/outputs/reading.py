"""Parsing of JSON in a model's text, and descriptions of its faults."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_array, as_object, error_text
from turnloom.variables.logic.types import is_json

# The depth limit, the same as for files.
MAX_DEPTH = 64
_LINES = 10
_WIDTH = 240


def unusable(value: Json) -> str | None:
    """Why a value cannot match any model: it is not JSON, or too deep."""
    if any(depth > MAX_DEPTH for depth, _ in enumerate(_levels(value))):
        return f"The value is nested deeper than {MAX_DEPTH} levels."
    return None if is_json(value) else "The value is not JSON."


def size_of(value: Json) -> int:
    """The number of values inside a value, including itself."""
    return sum(map(len, _levels(value)))


def _levels(value: Json) -> Iterator[list[Json]]:
    """The values at each depth, found without recursion."""
    level = [value]
    while level:
        yield level
        level = [part for each in level for part in _parts(each)]


def _parts(value: Json) -> Iterable[Json]:
    mapping = as_object(value)
    return mapping.values() if mapping is not None else as_array(value) or ()


def describe_faults(faults: Sequence[tuple[Path, str]]) -> str:
    """Faults with their paths, one per line; long lists and lines are truncated."""
    lines = [_cut(f"{_place(path)}: {message}") for path, message in faults[:_LINES]]
    if len(faults) > _LINES:
        lines.append(f"… and {len(faults) - _LINES} more.")
    return "\n".join(lines)


def _place(path: Path) -> str:
    """The path of a value: `steps[2].title`, or `pet(Cat).name` if validated as a Cat."""
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
    """The JSON value of a text, or of its only fenced block.

    Raises:
        ValueError: the text has no such value, or several; the message says why.
    """
    try:
        return _decoded(text.strip())
    except ValueError as error:
        blocks = list(_blocks(text))
        if not blocks:
            message = f"The answer is not JSON and has no {_FENCE}json block: {error}"
            raise ValueError(message) from error
    marked = [body for label, body in blocks if label == "json"]
    bodies = marked or [body for label, body in blocks if not label]
    if len(bodies) != 1:
        raise ValueError(f"The answer has {len(bodies)} JSON blocks; expected exactly one.")
    try:
        return _decoded(bodies[0])
    except ValueError as error:
        raise ValueError(f"The block in the answer is not valid JSON: {error}") from error


def _decoded(text: str) -> Json:
    try:
        value = msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("It is nested too deeply.") from error
    except ValueError as error:
        raise ValueError(f"{error_text(error)}.") from error
    if problem := unusable(value):
        raise ValueError(problem)
    return value


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The label and body of each closed block."""
    fence, label, body = "", "", list[str]()
    for line in text.split("\n"):  # JSON strings may contain other line breaks
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
