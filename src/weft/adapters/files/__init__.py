"""Workflow folders as documents with line numbers, and their code, loaded afresh and path-safe."""

from weft.adapters.files.folders import (
    read_folder,
    read_part,
    restore_folder,
    texts,
    workflows_below,
)
from weft.adapters.files.modules import Modules
from weft.adapters.files.parsing import parse
from weft.adapters.files.programs import program, source
from weft.adapters.files.prose import read_text, texts_below
from weft.adapters.files.writing import dump, write_back

__all__ = [
    "Modules",
    "dump",
    "parse",
    "program",
    "read_folder",
    "read_part",
    "read_text",
    "restore_folder",
    "source",
    "texts",
    "texts_below",
    "workflows_below",
    "write_back",
]
