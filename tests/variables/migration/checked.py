"""Today's check, asked about what a migration gives."""

import json
from typing import Any

from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import Report
from turnloom.kernel.values import Json
from turnloom.variables.logic.checking import KnownNames, check_variables
from turnloom.variables.logic.triggers import definition_model
from turnloom.variables.spec import Exposure, VariableDefinition

_SCHEMA = json.dumps(definition_model().model_json_schema())


def problems(value: Json) -> list[str]:
    """What is wrong with a file by today's check, its agents being unknown; variables that it shows
    but never declared are the author's."""
    report = Report("Flow")
    document = DeclarationFile("context_variables.json", value, "")
    check_variables(report, document, KnownNames(frozenset()))
    errors = [each for each in report.problems if each.severity == "error"]
    return [each.message for each in errors if each.code != "W021"]


def declarable(value: Json) -> Json:
    """The parts of a migrated file that the models know: what they lack is left out."""
    parts = value["context_variables"]
    if not isinstance(parts["definitions"], dict) or not isinstance(parts["agents"], dict):
        return {}  # some have no name, or two have the same
    definitions = {
        name: _trimmed(entry, VariableDefinition)
        for name, entry in parts["definitions"].items()
        if f'"const": "{entry["source"]["type"]}"' in _SCHEMA
    }
    known = {*definitions} | ({*_shown(parts)} - {*parts["definitions"]})
    agents = {
        name: {
            key: [each for each in said if each in known] if key == "variables" else said
            for key, said in _trimmed(entry, Exposure).items()
        }
        for name, entry in parts["agents"].items()
    }
    return {"context_variables": {"definitions": definitions, "agents": agents}}


def _shown(parts: Json) -> list[str]:
    return [name for view in parts["agents"].values() for name in view.get("variables", ())]


def _trimmed(
    entry: dict[str, Any], model: type[VariableDefinition] | type[Exposure]
) -> dict[str, Any]:
    kept = {key: said for key, said in entry.items() if key in model.model_fields}
    if "triggers" in kept.get("source", {}):
        triggers = [
            each
            for each in kept["source"]["triggers"]
            if f'"const": "{each.get("type")}"' in _SCHEMA
        ]
        kept["source"] = {**kept["source"], "triggers": triggers}
    return kept
