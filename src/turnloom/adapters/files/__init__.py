"""Read workflow folders as documents with line numbers, and load their code, safely within the
folder."""

from turnloom.adapters.files.data import read_data
from turnloom.adapters.files.folders import (
    read_folder,
    read_part,
    restore_folder,
    texts,
    workflows_below,
)
from turnloom.adapters.files.migrating import read_sources, replace_files, undo_replacement
from turnloom.adapters.files.modules import Modules, may_exit, program, source
from turnloom.adapters.files.parsing import parse
from turnloom.adapters.files.prose import read_text, texts_below
from turnloom.adapters.files.writing import back_up, dump, replace_text

__all__ = [
    "back_up",
    "Modules",
    "dump",
    "may_exit",
    "parse",
    "program",
    "read_data",
    "read_folder",
    "read_part",
    "read_sources",
    "read_text",
    "replace_files",
    "replace_text",
    "restore_folder",
    "source",
    "texts",
    "texts_below",
    "undo_replacement",
    "workflows_below",
]
