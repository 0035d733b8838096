"""`turnloom migrate`: rewrite a workflow folder of an earlier shape."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from turnloom.cli.command import Command
from turnloom.cli.problems import line
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.conversation.logic.migrating import (
    DERIVATIONS,
    FileMigration,
    derivations,
    migrate_documents,
    unread_file,
    written_to,
)
from turnloom.errors import UsageError
from turnloom.variables.logic.migration import Note, Stub
from turnloom.wiring import read_sources, replace_files, undo_replacement

_STYLES = {"lost": "bold red", "unchanged": "dim", "left": "yellow"}
_COMMENT = re.compile(r"(^|\s)#", re.MULTILINE)

# Parts of a line of the report, some with a style.
_Line = tuple[str | tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class MigrateCommand(Command):
    """Rewrite a workflow folder of MozaiksAI, or of an earlier shape, into today's shape; report
    what became of each entry."""

    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="A workflow folder, or its context variables file."),
    ]
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the report; write nothing.")] = (
        False
    )
    undo: Annotated[
        bool, typer.Option("--undo", help="Restore the files that the last migration replaced.")
    ] = False

    def carry_out(self, terminal: Terminal) -> int:
        """Rewrite the files; 2 if one cannot be read, 1 if one cannot be written."""
        if self.undo:
            return self._undo(terminal)
        sources = read_sources(self.path)
        if sources.problems:
            terminal.fail("The files cannot be read as they stand, and are left alone.")
            for problem in sources.problems:
                terminal.tell(line(problem))
            return 2
        files = [*migrate_documents(sources.documents), *map(unread_file, sources.others)]
        stubs = [stub for file in files for stub in file.stubs]
        report = [*_report(files, stubs)]
        for each in report:
            terminal.show(joined(*each))
        changed = [file for file in files if file.changed]
        if not changed:
            terminal.show(safe("This is today's shape; nothing was changed."))
            return 0
        texts = [each.text for each in sources.documents.values() if _loses_comments(each, changed)]
        if texts:
            terminal.show(safe("Comments are not taken along."))
        if self.dry_run:
            terminal.show(safe("Nothing was written. Leave `--dry-run` out to write it."))
            return 0
        return self._write(sources, changed, _plain(report), terminal)

    def _write(
        self, sources: Any, changed: Sequence[FileMigration], report: str, terminal: Terminal
    ) -> int:
        """Replace the files that changed, and name their backups."""
        stubs = [stub for file in changed for stub in file.stubs]
        code = derivations(stubs, sources.derivations)
        texts = {DERIVATIONS: code} if stubs and code != sources.derivations else {}
        names = {os.path.basename(file.file): file for file in changed}
        values = {written_to(name): file.value for name, file in names.items()}
        renamed = {name: written_to(name) for name in names if written_to(name) != name}
        try:
            kept = replace_files(sources.root, texts, values, report, renamed=renamed)
        except OSError as error:
            names = ", ".join(repr(file.file) for file in changed)
            terminal.fail(f"{names} cannot be written: {error.strerror}. The folder is as it was.")
            return 1
        backups = [repr(os.path.join(sources.root, each)) for each in kept]
        said = f"The former files are {', '.join(backups)}; " if backups else ""
        done = "restores them" if backups else "undoes it"
        terminal.show(safe(f"{said}`turnloom migrate {sources.root} --undo` {done}."))
        return 0

    def _undo(self, terminal: Terminal) -> int:
        if self.dry_run:
            raise UsageError("`--undo` writes: leave out `--dry-run`, or `--undo`.")
        root = os.path.dirname(self.path) or "." if os.path.isfile(self.path) else self.path
        try:
            restored, removed = undo_replacement(root)
        except OSError as error:
            terminal.fail(f"{root!r} cannot be restored: {error.strerror}.")
            return 1
        terminal.show(safe(f"Restored: {', '.join(restored)}."))
        terminal.show(safe(f"Removed: {', '.join(removed)}."))
        return 0


def _loses_comments(document: Any, changed: Sequence[FileMigration]) -> bool:
    is_changed = any(file.file == document.file for file in changed)
    is_yaml = not document.file.endswith(".json")
    return is_changed and is_yaml and _COMMENT.search(document.text) is not None


def _report(files: Sequence[FileMigration], stubs: Sequence[Stub]) -> Iterator[_Line]:
    """What became of each entry, what was lost and what was assumed."""
    for file in files:
        if not file.changed and all(note.became == "unchanged" for note in file.notes):
            names = ", ".join(note.name or note.where for note in file.notes)
            yield ((file.file, "bold"), f": unchanged: {names or 'nothing declared'}.")
            continue
        yield ((file.file, "bold"),)
        for note in file.notes:
            yield from _lines(note)
        if file.changed:
            yield (_summary(file.notes),)
    if stubs:
        names = ", ".join(stub.function for stub in stubs)
        yield ((DERIVATIONS, "bold"), f": functions to write: {names}.")


def _lines(note: Note) -> Iterator[_Line]:
    name = f"{note.name} ({note.where})" if note.name and note.name != note.where else note.where
    became = (note.became, _STYLES.get(note.became, "green"))
    yield ("  ", (name, "bold"), f": {note.was} → " if note.was else ": ", became)
    for word, sentences, style in (
        ("lost", note.lost, "red"),
        ("assumed", note.assumed, "yellow"),
        ("left", note.left, "yellow"),
    ):
        for sentence in sentences:
            yield ("    ", (f"{word}: ", style), sentence)


def _plain(report: Sequence[_Line]) -> str:
    """The report as text."""
    lines = (
        "".join(part if isinstance(part, str) else part[0] for part in each) for each in report
    )
    return "".join(f"{each}\n" for each in lines)


def _summary(notes: Sequence[Note]) -> str:
    lost = sum(note.became == "lost" for note in notes)
    same = sum(note.became in ("unchanged", "left") for note in notes)
    rewritten = len(notes) - lost - same
    return f"Entries: {rewritten} rewritten, {same} unchanged, {lost} lost."
