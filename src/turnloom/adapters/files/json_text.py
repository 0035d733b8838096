"""JSON text as nodes: the JSON parser judges and reads it, tokens tell where values stand."""

import json
import re
from collections.abc import Iterator

from turnloom.adapters.files.nodes import (
    MAX_DEPTH,
    Entries,
    Items,
    Node,
    Refused,
    Scalar,
    number,
    too_deep,
)

# A string without an end is a token too, or its end would be looked for from every quote again.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]|[^\s,:{}\[\]"]+', re.DOTALL)
_WORDS = {"null", "true", "false"}
_REMEDIES = {
    "property name": "Put keys into double quotes, and no comma after the last entry.",
    "trailing comma": "Remove the comma after the last entry.",
    "delimiter": "Add the missing character, or look for a quote that ends too early.",
    "control character": "Write line breaks inside strings as \\n and tabs as \\t.",
    "escape": "Write a backslash as \\\\.",
    "Extra data": "Keep one value in the file.",
    "Unterminated": "Close the string with a double quote.",
}


def read_json(text: str) -> Node | None:
    """The tree of a JSON text, or None when the text is empty."""
    if not text.strip():
        return None
    _refuse_deep(text)
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        hints = (hint for words, hint in _REMEDIES.items() if words in error.msg)
        message, remedy = f"This is not valid JSON: {error.msg}.", "Correct the text here."
        raise Refused("W002", error.pos, message, next(hints, remedy)) from None
    tokens = _TOKEN.finditer(text)
    return _node(tokens, next(tokens))


def _refuse_deep(text: str) -> None:
    """Keep parser and `_node` from recursing too far."""
    # Up to its first error the parser meets these very tokens, so it never goes deeper.
    depth = 0
    for token in _TOKEN.finditer(text):
        match token.group():
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case _:
                continue
        if depth > MAX_DEPTH:
            raise too_deep(token.start())


def _node(tokens: Iterator[re.Match[str]], token: re.Match[str]) -> Node:
    """The node that begins with `token`, in a text that is known to be valid."""
    text, offset = token.group(), token.start()
    if text == "[":
        return Items(offset, [_node(tokens, item) for item in _until("]", tokens)])
    if text == "{":
        keys = _until("}", tokens)
        return Entries(offset, [(_node(tokens, key), _node(tokens, next(tokens))) for key in keys])
    if text in _WORDS or text.startswith('"'):
        return Scalar(offset, json.loads(text), text)
    return number(offset, text, json.loads)


def _until(end: str, tokens: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    for token in tokens:
        if token.group() == end:
            return
        yield token
