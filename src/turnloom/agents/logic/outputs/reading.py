"""The JSON value in what a model said."""

from collections.abc import Iterator

import msgspec

from turnloom.agents.logic.outputs.problems import unusable
from turnloom.kernel.values import Json, said

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
