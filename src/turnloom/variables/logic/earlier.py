"""Checks of variables whose source is of an older format: what no migration can mend."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.kernel.values import as_array, as_object, preview
from turnloom.variables.logic.matching import reader
from turnloom.variables.logic.migration.layout import EARLIER, SOURCE_KEYS, TRIGGER_KEYS
from turnloom.variables.logic.triggers import TRIGGER_LOADERS
from turnloom.variables.spec import AgentTextTrigger

_PREDICATES = ("equals", "contains", "regex")
# What sources and triggers of older formats cannot do without.
_NEEDED = {"data_reference": ("collection",), "file": ("path",)}
_HEARD = {"agent_text": ("agent",), "ui_response": ("tool", "response_key")}


def check_earlier(report: Report, document: DeclarationFile, entry: DocumentEntry) -> None:
    """Check what a migration cannot mend in a source of an older format."""
    source = as_object((as_object(entry.value) or {}).get("source")) or {}
    path, kind = (*entry.path, "source"), str(source.get("type"))
    known = ("type", *SOURCE_KEYS.get(kind, ()))
    _check_keys(report, document, DocumentEntry(path, source), known, also=EARLIER)
    needed = _NEEDED.get(kind, ())
    if kind == "config" and source.get("default") is None:
        needed = ("env_var",)
    _check_needed(report, document, DocumentEntry(path, source), needed)
    for place, trigger in triggers_in(source):
        where = (*path, *place)
        heard = str(trigger.get("type"))
        if heard not in _HEARD:
            if heard not in TRIGGER_LOADERS:
                names = ", ".join(map(repr, TRIGGER_LOADERS))
                message = f"Unknown type {preview(trigger.get('type'))}; allowed: {names}."
                report.add(document, where, "W012", message, remedy="Use one of these.")
            continue
        own = DocumentEntry(where, trigger)
        _check_keys(report, document, own, TRIGGER_KEYS, also=())
        _check_needed(report, document, own, _HEARD[heard])
        if heard == "agent_text":
            _check_match(report, document, where, trigger)


def _check_keys(
    report: Report,
    document: DeclarationFile,
    entry: DocumentEntry,
    known: Sequence[str],
    also: Collection[str],
) -> None:
    for key, said in (as_object(entry.value) or {}).items():
        if said is not None and key not in known and key not in also:
            report.unknown(document, (*entry.path, key), known)


def _check_needed(
    report: Report, document: DeclarationFile, entry: DocumentEntry, keys: Sequence[str]
) -> None:
    value = as_object(entry.value) or {}
    for key in keys:
        if not isinstance(value.get(key), str) or not value[key]:
            message = f"Key {key!r} is missing."
            report.add(document, entry.path, "W011", message, remedy="Add it.")


def _check_match(
    report: Report, document: DeclarationFile, path: Path, trigger: Mapping[str, Any]
) -> None:
    """Check that a trigger compares the text, and with an expression that can be read."""
    said = {**trigger, **(as_object(trigger.get("match")) or {})}
    texts = {key: said[key] for key in _PREDICATES if isinstance(said.get(key), str)}
    if not texts:
        report.add(document, path, "W011", "Key 'match' is missing.", remedy="Add it.")
    elif "regex" in texts:
        plain = {"type": "agent_text", "agent": "x", "match": {"regex": texts["regex"]}}
        try:
            reader(AgentTextTrigger.model_validate(plain))
        except ValueError as error:
            where = (*path, "match", "regex") if "match" in trigger else (*path, "regex")
            report.add(document, where, "W025", str(error), remedy="Correct it.")


def triggers_in(source: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The triggers of a source, also those of its transitions, with their paths."""
    for number, trigger in enumerate(as_array(source.get("triggers")) or ()):
        yield ("triggers", number), as_object(trigger) or {}
    for number, transition in enumerate(as_array(source.get("transitions")) or ()):
        trigger = (as_object(transition) or {}).get("trigger")
        yield ("transitions", number, "trigger"), as_object(trigger) or {}
