"""What variables are for, as a document says it."""

from turnloom.kernel.documents import Document
from turnloom.kernel.models import Entry, Report
from turnloom.kernel.values import as_object


def describe(document: Document) -> dict[str, str]:
    """The description of each variable that has one.

    It is read from the document as it stands, for a run may be pinned to declarations that do not
    pass the check of this process: the kind of a trigger, say, may be registered in another one.
    """
    report = Report(document.file)
    declared = as_object(report.part(document, "context_variables").value) or {}
    named = report.named(document, Entry((), declared.get("definitions")), "Variable")
    found: dict[str, str] = {}
    for name, entry in named.entries.items():
        said = (as_object(entry.value) or {}).get("description")
        if isinstance(said, str) and said:
            found[name] = said
    return found
