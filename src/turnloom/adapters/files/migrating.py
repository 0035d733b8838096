"""Replace several files of a folder at once, so that it can be undone."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from turnloom.adapters.files.folders import PARTS, read_folder, read_part
from turnloom.adapters.files.writing import back_up, line_end, replace_text
from turnloom.errors import Diagnostic, UsageError
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.documents import DeclarationFile

# What each migration replaced, `.migration.json`, `.migration.1.json` and so on; hidden, so that it
# is no part of the workflow.
_RECORD = re.compile(r"\.migration(?:\.([0-9]+))?\.json")
NONE: Mapping[str, str] = MappingProxyType({})
# Diagnostics of files that are no part of a workflow.
_NO_PART = ("W007", "W008")


class FolderSources(NamedTuple):
    """The files of a workflow folder: its documents by part, problems of reading them, files that
    are no part of it, and the text of `derivations.py`, if it has one."""

    root: str
    documents: Mapping[str, DeclarationFile]
    problems: list[Diagnostic]
    others: list[str]
    derivations: str | None


def read_sources(path: str) -> FolderSources:
    """The files of a folder, or only the file with the variables.

    Raises:
        UsageError: the path does not exist, is the file of another part, `derivations.py` is not
            UTF-8, or a migration did not finish.
    """
    if os.path.isfile(path):
        root, name = os.path.split(path)
        root, part = root or ".", os.path.splitext(name)[0]
        if part in PARTS and part != "context_variables":
            raise UsageError(f"{path!r} declares no variables. Migrate its folder: {root!r}.")
        _latest(root)
        document, problems = read_part(path, "context_variables")
        documents = {"context_variables": document} if document is not None else {}
        return FolderSources(root, documents, problems, [], derivations=_derivations(root))
    if not os.path.isdir(path):
        raise UsageError(f"{path!r} does not exist. Name a workflow folder, or a file in one.")
    _latest(path)
    folder, found = read_folder(path)
    others = [each.file for each in found if each.code in _NO_PART]
    problems = [each for each in found if each.file not in others and not each.file.endswith(".py")]
    return FolderSources(path, folder.documents, problems, others, derivations=_derivations(path))


def _derivations(root: str) -> str | None:
    try:
        with open(os.path.join(root, "derivations.py"), encoding="utf-8") as stream:
            return stream.read()
    except OSError:
        return None
    except UnicodeDecodeError as error:
        raise UsageError(f"'derivations.py' is not UTF-8: {error.reason}. Save it so.") from error


class Replaced(NamedTuple):
    """The backups of the replaced files, and the files that are new."""

    backups: dict[str, str]
    created: list[str]


class _Record(NamedTuple):
    """What a migration replaces: backups by file, new files, and the digest of each new text.

    It is written before the first file is replaced, so that a migration which was killed can be
    undone, and again at the end.
    """

    backups: Mapping[str, str]
    created: Sequence[str]
    digests: Mapping[str, str]
    finished: bool = True


def replace_files(
    root: str, texts: Mapping[str, str], report: str, renamed: Mapping[str, str] = NONE
) -> Replaced:
    """Write files of a folder with backups and with the line ends that they have, and the report of
    it; all of them or none. Reports and backups of earlier times are kept. Of files that are
    `renamed`, to the name of one that is written, only the backup stays.

    Raises:
        UsageError: another migration is under way, or did not finish.
        OSError: a file cannot be written; the folder is unchanged.
    """
    number = _latest(root) + 1
    name = _numbered(".migration", ".json", number)
    try:
        _create(os.path.join(root, name), "")  # fails if another migration comes first
    except FileExistsError:
        raise _unfinished(root) from None
    done, written = Replaced({}, []), [name]
    try:
        former = {*texts, *renamed}
        existing = [file for file in former if os.path.lexists(os.path.join(root, file))]
        for file in existing:
            backup = back_up(os.path.join(root, file))
            done.backups[file] = os.path.relpath(backup, os.path.realpath(root))
        ends = {renamed.get(file, file): line_end(os.path.join(root, file)) for file in existing}
        wanted = {file: text.replace("\n", ends.get(file, "\n")) for file, text in texts.items()}
        wanted[_unused(root, number)] = report
        done.created.extend(file for file in wanted if file not in existing)
        digests = {file: fingerprint(text) for file, text in wanted.items()}
        record = _Record(done.backups, done.created, digests, finished=False)
        _write(root, name, record)
        for file, text in wanted.items():
            if file in existing:
                replace_text(os.path.join(root, file), text)
            else:
                _create(os.path.join(root, file), text)
                written.append(file)
        for file in renamed:
            os.unlink(os.path.realpath(os.path.join(root, file)))
        _write(root, name, record._replace(finished=True))
    except OSError:
        _restore(root, done.backups, written)
        raise
    return done


def _latest(root: str) -> int:
    """The number of the last migration, which must have finished; -1 if there is none."""
    records = _records(root)
    if records and not _read(root, records[max(records)]).finished:
        raise _unfinished(root)
    return max(records, default=-1)


def _unfinished(root: str) -> UsageError:
    return UsageError(
        f"Another migration of {root!r} is under way, or was stopped in the middle. If none is "
        f"running, undo it: `turnloom migrate {root} --undo`."
    )


def _write(root: str, name: str, record: _Record) -> None:
    replace_text(os.path.join(root, name), json.dumps(record._asdict()))


def _read(root: str, name: str) -> _Record:
    """What a migration replaced; an empty record is one that replaced nothing yet.

    Raises:
        UsageError: the record is damaged.
    """
    try:
        with open(os.path.join(root, name), encoding="utf-8") as stream:
            text = stream.read()
        return _Record(**json.loads(text)) if text else _Record({}, [], {}, finished=False)
    except (OSError, ValueError, TypeError):
        raise UsageError(
            f"{root!r} has no migration to undo: {name!r} is damaged. Restore the files yourself, "
            "from their `.bak`, and delete it."
        ) from None


def _records(root: str) -> dict[int, str]:
    """The files that say what migrations replaced, by number."""
    found = (_RECORD.fullmatch(name) for name in os.listdir(root))
    return {int(each[1] or 0): each[0] for each in found if each}


def _unused(root: str, number: int) -> str:
    """The name of a report that the folder does not have yet."""
    while os.path.lexists(os.path.join(root, name := _numbered("migration", ".txt", number))):
        number += 1
    return name


def _numbered(stem: str, ending: str, number: int) -> str:
    return f"{stem}.{number}{ending}" if number else f"{stem}{ending}"


def undo_replacement(root: str) -> Replaced:
    """Restore the files that were replaced last, and remove the new ones.

    Raises:
        UsageError: nothing was replaced, or a file was changed since.
        OSError: a file cannot be restored.
    """
    records = _records(root) if os.path.isdir(root) else {}
    if not records:
        raise UsageError(f"{root!r} has no migration to undo.")
    last = records[max(records)]
    record = _read(root, last)
    backups = {
        file: backup
        for file, backup in record.backups.items()
        if record.finished or os.path.lexists(os.path.join(root, backup))
    }
    for file, digest in record.digests.items():
        found, backup = _digest(os.path.join(root, file)), record.backups.get(file)
        if backup is not None and file not in backups:
            continue  # restored by an undo that was killed
        former = _digest(os.path.join(root, backup)) if backup else None
        if found != digest and (record.finished or found != former):
            raise UsageError(
                f"{file!r} was changed after the migration. Restore it yourself, from "
                f"{backup or 'nothing'!r}."
            )
    if record.finished:  # an undo that is killed can be repeated
        _write(root, last, record._replace(finished=False))
    _restore(root, backups, [*record.created, last])
    return Replaced({**record.backups}, [*record.created])


def _restore(root: str, backups: Mapping[str, str], created: Sequence[str]) -> None:
    for file, backup in backups.items():
        os.replace(os.path.join(root, backup), os.path.realpath(os.path.join(root, file)))
    for file in created:
        if os.path.lexists(path := os.path.join(root, file)):
            os.unlink(path)


def _create(path: str, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            os.unlink(path)
        raise


def _digest(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return fingerprint(stream.read())
    except (OSError, ValueError):
        return None
