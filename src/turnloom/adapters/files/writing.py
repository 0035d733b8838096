"""Write documents back to their files in the same format, and copy files."""

import json
import os
import shutil
import tempfile
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.representer import SafeRepresenter

from turnloom.adapters.files.parsing import is_plain
from turnloom.kernel.values import Json

# Wider than any line, so that lines are never folded.
_WIDTH = 2**30


def replace_text(path: str, text: str) -> None:
    """Replace the content of a file atomically.

    Raises:
        OSError: the file cannot be written; it is unchanged.
    """
    path = os.path.realpath(path)
    fresh = _write_sibling(path, text)
    try:
        os.replace(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise


def line_end(path: str) -> str:
    """What ends the first line of a file.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as stream:
        return "\r\n" if stream.readline().endswith(b"\r\n") else "\n"


def dump(file: str, value: Json) -> str:
    """A value as JSON or YAML text, depending on the file name."""
    if file.endswith(".json"):
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    dumper: Any = YAML(typ="safe", pure=True, plug_ins=[])
    dumper.Representer = _representer
    dumper.default_flow_style = False
    dumper.sort_base_mapping_type_on_output = False
    dumper.allow_unicode = True
    dumper.width = _WIDTH
    dumper.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    dumper.dump(value, stream)
    return stream.getvalue()


class _JsonRepresenter(SafeRepresenter):
    """Represents JSON values as YAML, without anchors, quoted where our parser requires it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(representer: Any, text: str) -> Any:
    """Represent a text unquoted if that is safe, else as a block or in quotes."""
    lines = text.split("\n")
    quoted = not is_plain(text) or not all(map(str.isprintable, lines))
    style = '"' if quoted else "|" if len(lines) > 1 else None
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style)


_representer: Any = _JsonRepresenter
_representer.add_representer(str, _represent)


def _write_sibling(path: str, text: str) -> str:
    """Write a text to a new file in the same folder, synced to disk, with the mode of the
    original."""
    handle, fresh = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=_folder(path))
    try:
        with open(handle, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        shutil.copymode(path, fresh)
    except OSError:
        os.unlink(fresh)
        raise
    return fresh


def back_up(path: str) -> str:
    """Copy a file to an unused name next to it, and return its path.

    Raises:
        OSError: the file cannot be copied.
    """
    path = os.path.realpath(path)
    number, backup = 0, f"{path}.bak"
    while os.path.lexists(backup):
        number += 1
        backup = f"{path}.bak.{number}"
    with open(path, "rb") as former, open(backup, "xb") as copy:
        try:
            shutil.copyfileobj(former, copy)
            copy.flush()
            os.fsync(copy.fileno())
            shutil.copymode(path, backup)
        except OSError:
            os.unlink(backup)
            raise
    return backup


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))
