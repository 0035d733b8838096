"""Documents written back where they were read, in their own format; the former file stays."""

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

# Wider than any line, so that none is folded.
_WIDTH = 2**30


def write_back(path: str, value: Json) -> str:
    """Replace the content of a file at once, and give the path of the copy that was made before.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    path = os.path.realpath(path)
    fresh = _beside(path, dump(path, value))
    try:
        kept = _keep(path)
        os.replace(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise
    return kept


def dump(file: str, value: Json) -> str:
    """A value as the text of a JSON or YAML file, by the name of the file."""
    if file.endswith(".json"):
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    dumper: Any = YAML(typ="safe", pure=True, plug_ins=[])
    dumper.Representer = _plainly
    dumper.default_flow_style = False
    dumper.sort_base_mapping_type_on_output = False
    dumper.allow_unicode = True
    dumper.width = _WIDTH
    dumper.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    dumper.dump(value, stream)
    return stream.getvalue()


class _Plainly(SafeRepresenter):
    """JSON values as YAML: no anchors, and quotes wherever our own reader wants them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(plainly: Any, text: str) -> Any:
    """A text as it stands where that is safe, as a block of lines, or in quotes."""
    lines = text.split("\n")
    quoted = not is_plain(text) or not all(map(str.isprintable, lines))
    style = '"' if quoted else "|" if len(lines) > 1 else None
    return plainly.represent_scalar("tag:yaml.org,2002:str", text, style)


_plainly: Any = _Plainly
_plainly.add_representer(str, _represent)


def _beside(path: str, text: str) -> str:
    """A file with this text in the same folder, complete on disk, as accessible as the other."""
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


def _keep(path: str) -> str:
    """The path of a copy of a file, under a name that nothing had."""
    number, kept = 0, f"{path}.bak"
    while os.path.lexists(kept):
        number += 1
        kept = f"{path}.bak.{number}"
    with open(path, "rb") as former, open(kept, "xb") as copy:
        try:
            shutil.copyfileobj(former, copy)
            copy.flush()
            shutil.copymode(path, kept)
        except OSError:
            os.unlink(kept)
            raise
    return kept


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))
