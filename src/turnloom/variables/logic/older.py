"""Keys of older shapes in a file of today's: ignored, and said to be."""

from turnloom.kernel.documents import Document
from turnloom.kernel.models import Entry, Report
from turnloom.kernel.values import as_object
from turnloom.variables.logic.migration.layout import OLDER


def check_older(report: Report, document: Document, root: Entry) -> None:
    """Note what an older shape declares, at the top of the file and under its outer key."""
    for entry in (Entry((), document.value), root):
        for key in as_object(entry.value) or ():
            if key in OLDER:
                report.warn(
                    document,
                    (*entry.path, key),
                    "W014",
                    f"Key {key!r} belongs to an older shape of this file, and is ignored.",
                    "Use `turnloom migrate` to rewrite the file, or remove the key.",
                )
