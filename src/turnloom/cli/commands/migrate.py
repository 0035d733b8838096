"""`turnloom migrate`: rewrite a context variables file of an earlier shape."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from turnloom.cli.command import Command
from turnloom.cli.problems import line
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.kernel.documents import DeclarationFile
from turnloom.variables.logic.migration import Migrated, Note, migrate
from turnloom.wiring import read_part, write_back

_STYLES = {"lost": "bold red", "unchanged": "dim"}
_COMMENT = re.compile(r"(^|\s)#", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class MigrateCommand(Command):
    """Rewrite a context variables file into the current format, and report each entry."""

    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A workflow folder, or the file itself.")
    ]
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would become of it; write nothing.")
    ] = False

    def carry_out(self, terminal: Terminal) -> int:
        """Rewrite the file; 2 if it cannot be read, 1 if it cannot be written."""
        document, problems = read_part(self.path, "context_variables")
        if document is None or problems:
            terminal.fail("The file cannot be read as it stands, and is left alone.")
            for problem in problems:
                terminal.tell(line(problem))
            return 2
        migrated = migrate(document.value)
        terminal.show(safe(document.file, "bold"))
        for note in migrated.notes:
            _tell(note, terminal)
        return self._finish(document, migrated, terminal)

    def _finish(self, document: DeclarationFile, migrated: Migrated, terminal: Terminal) -> int:
        """Write what has changed, and name the backup."""
        if not migrated.changed:
            terminal.show(safe("This is today's shape; nothing was changed."))
            return 0
        terminal.show(safe(_summary(migrated.notes)))
        if not document.file.endswith(".json") and _COMMENT.search(document.text):
            terminal.show(safe("Comments are not taken along."))
        if self.dry_run:
            terminal.show(safe("Nothing was written. Leave `--dry-run` out to write it."))
            return 0
        try:
            kept = write_back(document.file, migrated.value)
        except OSError as error:
            terminal.fail(
                f"{document.file!r} cannot be written: {error.strerror}. It is as it was."
            )
            return 1
        terminal.show(safe(f"The former file is {os.path.relpath(kept)!r}."))
        return 0


def _tell(note: Note, terminal: Terminal) -> None:
    """Report an entry: its new form, losses and assumptions."""
    name = f"{note.name} ({note.where})" if note.name and note.name != note.where else note.where
    became = (note.became, _STYLES.get(note.became, "green"))
    terminal.show(joined("  ", (name, "bold"), f": {note.was} → ", became))
    for word, sentences, style in (
        ("lost", note.lost, "red"),
        ("assumed", note.assumed, "yellow"),
    ):
        for sentence in sentences:
            terminal.show(joined("    ", (f"{word}: ", style), sentence))


def _summary(notes: Sequence[Note]) -> str:
    lost = sum(note.became == "lost" for note in notes)
    same = sum(note.became == "unchanged" for note in notes)
    rewritten = len(notes) - lost - same
    return f"Entries: {rewritten} rewritten, {same} unchanged, {lost} lost."
