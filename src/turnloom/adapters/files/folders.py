"""Workflow folders: the files they consist of, read from disk or restored from stored texts."""

import codecs
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from turnloom.adapters.files.parsing import MAX_BYTES, parse
from turnloom.errors import Diagnostic, UsageError
from turnloom.kernel.digests import fingerprint
from turnloom.kernel.documents import DeclarationFile, Folder
from turnloom.kernel.values import as_object, nearest

_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


def inside(root: str, path: str) -> bool:
    """Whether a path stays inside the folder when links are followed."""
    base = os.path.realpath(root)
    return os.path.commonpath((base, os.path.realpath(path))) == base


def link_problem(root: str, path: str, label: str) -> Diagnostic | None:
    """The problem of a link that leaves the folder."""
    if inside(root, path):
        return None
    message = "The link leaves the workflow folder."
    return Diagnostic(label, 1, "W009", message, remedy="Copy its target into the folder.")


def read_text(root: str, path: str, label: str) -> str | Diagnostic:
    """The text of a file without its byte order mark, or the reason why it cannot be read."""
    if problem := link_problem(root, path, label):
        return problem
    if not os.path.isfile(path):
        return Diagnostic(
            label, 1, "W001", "This is not a regular file.", remedy="Replace it with a text file."
        )
    try:
        with open(path, "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"Cannot read the file: {error.strerror}."
        return Diagnostic(label, 1, "W001", message, remedy="Check its permissions.")
    if len(raw) > MAX_BYTES:
        message = f"The file is larger than {MAX_BYTES // 1024 // 1024} MiB."
        return Diagnostic(
            label, 1, "W005", message, remedy="Split it, or move other content out of it."
        )
    return _decode(raw, label)


def _decode(raw: bytes, label: str) -> str | Diagnostic:
    if raw.startswith(_OTHER_ENCODINGS):
        return Diagnostic(
            label, 1, "W001", "The file is UTF-16 or UTF-32.", remedy="Save it as UTF-8."
        )
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"The file is not UTF-8: byte {raw[error.start]:#04x} at offset {error.start}."
        return Diagnostic(label, line, "W001", message, remedy="Save it as UTF-8.")


PARTS = (
    "orchestrator",
    "agents",
    "context_variables",
    "handoffs",
    "tools",
    "structured_outputs",
    "hooks",
    "ui_config",
    "script",
)
SUFFIXES = (".json", ".yaml", ".yml")
# The files of later releases of MozaiksAI, by the part that they replace.
_OTHER_NAMES = {"transition_graph": "handoffs", "middleware": "hooks"}

_IN_TOOLS = ("tools", "lifecycle_tools", "mcp_servers")

# Deeper directories, those of other tools and environments of Python have no code of a workflow.
_MAX_DEPTH = 8
_NO_PACKAGES = ("__pycache__", "node_modules")
_ENVIRONMENT = "pyvenv.cfg"

# A folder without any of these parts is not a workflow folder.
ESSENTIAL = ("orchestrator", "agents")


# Parses a file into its document and its problems.
Parse = Callable[[str, str], tuple[DeclarationFile | None, list[Diagnostic]]]


def read_folder(
    path: str | os.PathLike[str], parse: Parse = parse
) -> tuple[Folder, list[Diagnostic]]:
    """A workflow folder on disk, and all problems of reading it. `parse` may cache its results."""
    root = os.path.abspath(path)
    name = os.path.basename(root)
    if not os.path.isdir(root):
        message = f"{name!r} is not a workflow folder: the directory does not exist."
        remedy = "Name the directory with the workflow's files."
        return Folder(name, root, {}, {}), [Diagnostic(name, 1, "W000", message, remedy=remedy)]
    problems: list[Diagnostic] = []
    names = [file for file in _listing(root, name, "", problems) if file.lower().endswith(SUFFIXES)]
    known = _read(root, name, (file for file in names if _part(file, names)), problems)
    sources = _read(root, name, _code_files(root, name, problems), problems)
    documents = _documents(name, known, problems, parse)
    problems += _name_problems(name, names)
    _check_pack(root, name, problems)
    code = {file: fingerprint(text) for file, text in sources.items()}
    return Folder(name, root, documents, code), sorted(set(problems))


def read_part(path: str, part: str) -> tuple[DeclarationFile | None, list[Diagnostic]]:
    """The document of one part, from a folder or from its own file, and its problems.

    Raises:
        UsageError: the part does not exist, or two files declare it.
    """
    file = path if os.path.isfile(path) else _file_of(path, part)
    if not file.endswith(SUFFIXES):
        raise UsageError(f"{file!r} is neither JSON nor YAML. Name a .json, .yaml or .yml file.")
    text = read_text(os.path.dirname(os.path.abspath(file)), file, file)
    return (None, [text]) if isinstance(text, Diagnostic) else parse(file, text)


def workflows_below(path: str) -> list[str]:
    """The workflow folders directly in a folder that is not a workflow folder itself."""
    if not os.path.isdir(path) or _is_workflow(path):
        return []
    try:
        below = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    except OSError:  # reported when the folder is read as a workflow
        return []
    return [each for each in below if os.path.isdir(each) and _is_workflow(each)]


def _is_workflow(path: str) -> bool:
    files = [f"{part}{suffix}" for part in ESSENTIAL for suffix in SUFFIXES]
    return any(os.path.isfile(os.path.join(path, file)) for file in files)


def _file_of(path: str, part: str) -> str:
    if not os.path.isdir(path):
        raise UsageError(f"{path!r} does not exist. Name a workflow folder, or a file in one.")
    files = [os.path.normpath(os.path.join(path, f"{part}{suffix}")) for suffix in SUFFIXES]
    found = [file for file in files if os.path.lexists(file)]
    if not found:
        raise UsageError(f"{path!r} has no {part} file. Name a folder that has one.")
    if len(found) > 1:
        raise UsageError(f"{found[0]!r} and {found[1]!r} both declare {part!r}. Keep one of them.")
    return found[0]


def restore_folder(
    name: str, root: str, texts: Mapping[str, str], code: Mapping[str, str], parse: Parse = parse
) -> tuple[Folder, list[Diagnostic]]:
    """The folder that stored texts describe, regardless of the files on disk. `parse` may cache its
    results."""
    problems = _name_problems(name, texts)
    known = {file: text for file, text in texts.items() if _part(file, texts)}
    documents = _documents(name, known, problems, parse)
    return Folder(name, root, documents, dict(code)), sorted(set(problems))


def texts(folder: Folder) -> dict[str, str]:
    """The text of each document by file name, as `restore_folder` expects it."""
    documents = folder.documents.values()
    return {document.file.removeprefix(f"{folder.name}/"): document.text for document in documents}


def code_files(root: str) -> list[str]:
    """The code files of a folder: each `*.py` in its root, in `tools`, and in packages below."""
    return list(_code_files(root, os.path.basename(root), []))


def _code_files(root: str, name: str, problems: list[Diagnostic]) -> Iterator[str]:
    for below in ("", "tools/"):
        if os.path.isdir(os.path.join(root, below)):
            listed = _listing(root, name, below, problems)
            yield from (below + file for file in listed if file.endswith(".py"))
            for package in (below + each for each in listed if below + each != "tools"):
                yield from _packaged(root, package, _MAX_DEPTH)


def _packaged(root: str, package: str, depth: int) -> Iterator[str]:
    """The code files of a package; none if its name cannot be imported, or if it is a link."""
    path = os.path.join(root, package)
    if not os.path.basename(path).isidentifier() or path.endswith(_NO_PACKAGES):
        return
    if depth == 0 or os.path.islink(path) or not os.path.isdir(path):
        return
    listed = _listing(root, "", f"{package}/", [])
    if _ENVIRONMENT in listed:
        return
    yield from (f"{package}/{file}" for file in listed if file.endswith(".py"))
    for each in listed:
        yield from _packaged(root, f"{package}/{each}", depth - 1)


def _listing(root: str, name: str, below: str, problems: list[Diagnostic]) -> list[str]:
    """The visible names in a directory of the folder, sorted."""
    directory, label = os.path.join(root, below), f"{name}/{below}".rstrip("/")
    if problem := link_problem(root, directory, label):
        problems.append(problem)
        return []
    try:
        names = sorted(file for file in os.listdir(directory) if not file.startswith("."))
    except OSError as error:
        message = f"Cannot read the directory: {error.strerror}."
        problems.append(Diagnostic(label, 1, "W001", message, remedy="Check its permissions."))
        return []
    unreadable = [file for file in names if not _is_text(file)]
    for file in unreadable:
        message = f"The file name {file!a} is not UTF-8."
        problems.append(Diagnostic(label, 1, "W001", message, remedy="Rename the file."))
    return [file for file in names if file not in unreadable]


def _is_text(file: str) -> bool:
    """Whether a name is valid UTF-8; other bytes appear as lone surrogates."""
    return file == file.encode("utf-8", "replace").decode("utf-8")


def _read(root: str, name: str, files: Iterable[str], problems: list[Diagnostic]) -> dict[str, str]:
    """The texts of the readable files."""
    found: dict[str, str] = {}
    for file in files:
        text = read_text(root, os.path.join(root, file), f"{name}/{file}")
        if isinstance(text, Diagnostic):
            problems.append(text)
        else:
            found[file] = text
    return found


def _part(file: str, files: Collection[str] = ()) -> str | None:
    """The part of a workflow that a file declares; one of another release stands in for a part
    that no other file declares."""
    part, suffix = os.path.splitext(file)
    meant = _OTHER_NAMES.get(part)
    if meant and suffix in SUFFIXES and not any(meant + each in files for each in SUFFIXES):
        return meant
    return part if part in PARTS and suffix in SUFFIXES else None


def _documents(
    name: str, texts: Mapping[str, str], problems: list[Diagnostic], parse: Parse = parse
) -> dict[str, DeclarationFile]:
    """The documents by part. If two files declare one part, the first by name is used."""
    found: dict[str, DeclarationFile] = {}
    for file in sorted(texts):
        document, more = parse(f"{name}/{file}", texts[file])
        problems += more
        if document:
            own, part = os.path.splitext(file)[0], _part(file, texts) or ""
            found.setdefault(part, document.below(own) if _is_wrapped(document, own) else document)
    return found


def _is_wrapped(document: DeclarationFile, part: str) -> bool:
    """Whether a document has the name of its part as its only key, around everything else."""
    value = as_object(document.value) or {}
    # The tools file also has a key of its own name for a list.
    inner = as_object(value.get(part)) or {}
    return [*value] == [part] and (part != "tools" or not inner.keys().isdisjoint(_IN_TOOLS))


def _name_problems(name: str, files: Collection[str]) -> list[Diagnostic]:
    """Problems of the file names: no workflow, two files for one part, or an unknown part."""
    problems: list[Diagnostic] = []
    first: dict[str, str] = {}
    for file in sorted(files):
        part = _part(file, files)
        if part is None:
            problems.append(_unknown(name, file, files))
        elif first.setdefault(part, file) != file:
            message = f"{first[part]!r} and {file!r} both declare {part!r}."
            problem = Diagnostic(
                f"{name}/{file}", 1, "W004", message, remedy="Keep one of the two."
            )
            problems.append(problem)
    if not first.keys() & set(ESSENTIAL):
        message = f"{name!r} is not a workflow folder: it has no 'orchestrator' or 'agents' file."
        remedy = "Add `agents.yaml` and `orchestrator.yaml`, or name another folder."
        problems.append(Diagnostic(name, 1, "W000", message, remedy=remedy))
    return problems


def _unknown(name: str, file: str, files: Collection[str]) -> Diagnostic:
    """The problem of a file that is not a part: an error if it looks like one that is missing."""
    given = {_part(each) for each in files}
    meant = nearest(os.path.splitext(file)[0], [part for part in PARTS if part not in given])
    suffix = os.path.splitext(file)[1].lower()
    if meant:
        message = f"{file!r} is not a part of a workflow. Parts: {', '.join(PARTS)}."
        remedy = f"Rename it to '{meant}{suffix}'."
        return Diagnostic(f"{name}/{file}", 1, "W007", message, remedy=remedy)
    message = f"{file!r} is not a part of a workflow and has no effect here."
    remedy = "Keep it for the code or system that reads it, or move it out of the folder."
    label = f"{name}/{file}"
    return Diagnostic(label, 1, "W007", message, remedy=remedy, severity="warning")


def _check_pack(root: str, name: str, problems: list[Diagnostic]) -> None:
    """Warn about a `_pack`, which another system reads, if it declares something."""
    if not os.path.isdir(os.path.join(root, "_pack")):
        return
    found: list[Diagnostic] = []
    files = _listing(root, name, "_pack/", found)
    declared = (f"_pack/{file}" for file in files if file.lower().endswith(SUFFIXES))
    for file, text in _read(root, name, declared, found).items():
        document, more = parse(f"{name}/{file}", text)
        found += more
        if document:
            found += _pack_problems(document)
    problems += (replace(problem, severity="warning") for problem in found)


def _pack_problems(document: DeclarationFile) -> Iterator[Diagnostic]:
    """The first declaration in a pack: an item of a list, or an entry below the top."""
    for key, *deeper in filter(None, document.places):
        if deeper or isinstance(key, int):
            message = f"Only another system reads the pack; {key!r} in it has no effect here."
            remedy = "Start the other workflows from your own code."
            yield Diagnostic(
                document.file, document.place((key,)).line, "W008", message, remedy=remedy
            )
            return
