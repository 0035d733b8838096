"""Workflow folders as documents with line numbers, and their code, loaded afresh and path-safe."""

from weft.adapters.files.folders import read_folder, restore_folder, texts
from weft.adapters.files.modules import Modules
from weft.adapters.files.parsing import parse

__all__ = ["Modules", "parse", "read_folder", "restore_folder", "texts"]
