"""Bytes on disk as text, never from outside the folder that was asked for."""

import codecs
import os

from turnloom.adapters.files.nodes import MAX_BYTES
from turnloom.errors import Diagnostic

_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


def inside(root: str, path: str) -> bool:
    """Whether a path, with its links followed, stays in the folder."""
    base = os.path.realpath(root)
    return os.path.commonpath((base, os.path.realpath(path))) == base


def link_problem(root: str, path: str, label: str) -> Diagnostic | None:
    """The problem of a path that is a link out of the folder."""
    if inside(root, path):
        return None
    message = "The link points out of the workflow folder."
    return Diagnostic(label, 1, "W009", message, "Copy what it points to into the folder.")


def read_text(root: str, path: str, label: str) -> str | Diagnostic:
    """The text of a file in a folder, without its byte order mark, or why it cannot be had."""
    if problem := link_problem(root, path, label):
        return problem
    if not os.path.isfile(path):
        return Diagnostic(
            label, 1, "W001", "This is not a regular file.", "Replace it by a text file."
        )
    try:
        with open(path, "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        return Diagnostic(label, 1, "W001", message, "Check its permissions.")
    if len(raw) > MAX_BYTES:
        message = f"The file is larger than {MAX_BYTES // 1024 // 1024} MiB."
        return Diagnostic(
            label, 1, "W005", message, "Split it, or move what is not declaration out of it."
        )
    return _decode(raw, label)


def _decode(raw: bytes, label: str) -> str | Diagnostic:
    if raw.startswith(_OTHER_ENCODINGS):
        return Diagnostic(label, 1, "W001", "The file is UTF-16 or UTF-32.", "Save it as UTF-8.")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"The file is not UTF-8: byte {raw[error.start]:#04x} at offset {error.start}."
        return Diagnostic(label, line, "W001", message, "Save it as UTF-8.")
