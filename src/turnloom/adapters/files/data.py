"""Data files of a workflow folder: texts and documents that variables read."""

import json
import os

from turnloom.adapters.files.folders import inside
from turnloom.adapters.files.parsing import parse
from turnloom.kernel.values import Json

# The value of a variable is recorded, and shown to models.
MOST_BYTES = 256 * 1024


def read_data(root: str, path: str, syntax: str) -> Json:
    """The text of a file in a folder, or its value as JSON or YAML.

    Raises:
        ValueError: the file cannot be read; the text says why, and what to do.
    """
    text = _text(root, path)
    if syntax == "text":
        return text
    if syntax == "yaml":
        return _yaml(path, text)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"File {path!r} is not JSON: {error}. Correct it.") from None


def _text(root: str, path: str) -> str:
    file = os.path.join(root, path)
    if not inside(root, file):
        raise ValueError(f"File {path!r} is not in the workflow folder. Copy it into the folder.")
    if not os.path.isfile(file):
        raise ValueError(f"File {path!r} does not exist. Add it to the workflow folder.")
    try:
        with open(file, "rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(
            f"Cannot read file {path!r}: {error.strerror}. Check its permissions."
        ) from None
    if len(raw) > MOST_BYTES:
        raise ValueError(
            f"File {path!r} is larger than {MOST_BYTES // 1024} KiB. Shorten it, or search it as a "
            "collection."
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"File {path!r} is not UTF-8. Save it as UTF-8.") from None


def _yaml(path: str, text: str) -> Json:
    document, problems = parse(path if path.endswith(".yml") else f"{path}.yaml", text)
    for each in problems:
        said = each.message.rstrip(".")
        raise ValueError(f"File {path!r} is not YAML, in line {each.line}: {said}. {each.remedy}")
    return document.value if document else None


def _refuse(word: str) -> Json:
    raise ValueError(f"{word} is not allowed")
