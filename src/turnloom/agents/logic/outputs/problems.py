"""What is wrong with a value, in lines that a person or a model can act on."""

from collections.abc import Iterable, Iterator, Sequence

from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_array, as_object
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
