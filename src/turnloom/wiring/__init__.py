"""Settings, and the adapter behind each port. Adapters are imported on first use."""

from turnloom.wiring.collections import (
    PATH,
    Collections,
    open_search,
    read_document,
    root_of,
    texts_below,
    token_counter,
)
from turnloom.wiring.flows import flows_in, is_code
from turnloom.wiring.folders import Folders
from turnloom.wiring.models import ModelEngines
from turnloom.wiring.opening import (
    missing_store,
    open_artifacts,
    open_documents,
    open_store,
    open_vectors,
)
from turnloom.wiring.parts import (
    Parts,
    Setup,
    assemble,
    declared,
    read_part,
    read_sources,
    replace_files,
    set_up,
    undo_replacement,
    workflows_below,
)
from turnloom.wiring.programs import examine as examine_code
from turnloom.wiring.programs import examine_in_process
from turnloom.wiring.records import ChatRecords
from turnloom.wiring.settings import DEFAULT_STORE, Settings, SettingValue, in_force, settings

__all__ = [
    "DEFAULT_STORE",
    "PATH",
    "SettingValue",
    "Collections",
    "Folders",
    "ModelEngines",
    "Parts",
    "ChatRecords",
    "Settings",
    "Setup",
    "assemble",
    "declared",
    "examine_code",
    "examine_in_process",
    "flows_in",
    "in_force",
    "is_code",
    "missing_store",
    "open_artifacts",
    "open_documents",
    "open_search",
    "open_store",
    "open_vectors",
    "read_document",
    "read_part",
    "read_sources",
    "replace_files",
    "root_of",
    "set_up",
    "settings",
    "texts_below",
    "token_counter",
    "undo_replacement",
    "workflows_below",
]
