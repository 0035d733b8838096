"""`turnloom ingest`: put the texts of a folder into a collection."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import msgspec
import typer
from anyio import to_thread
from rich.progress import Progress

from turnloom.assembly.ports import VectorSearch
from turnloom.assembly.service.retrieval import TenantSearch
from turnloom.assembly.spec import AddedDocuments, Chunking, Document
from turnloom.assembly.spec.retrieval import LONGEST_CHUNK, check_name
from turnloom.board.spec import Visibility
from turnloom.cli.command import Command, as_text
from turnloom.cli.stored import AppId, Json
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.visibility import visibility_of
from turnloom.errors import UsageError
from turnloom.log.spec import LOCAL
from turnloom.wiring import (
    PATH,
    open_search,
    open_vectors,
    read_document,
    root_of,
    settings,
    texts_below,
)

# Files read and stored at once, and their total characters unless one file has more.
BATCH = 32
CHARACTERS = 1_000_000


class _Intake:
    """A collection that takes in files of a folder, and the results so far."""

    def __init__(
        self,
        folder: str,
        files: Iterable[str],
        metadata: Mapping[str, str],
        visibility: Visibility,
        search: VectorSearch,
    ) -> None:
        self._folder = folder
        self._metadata = metadata
        self._visibility = visibility
        self._search = search
        self._files = frozenset(files)
        self.added = AddedDocuments()
        self.skipped: dict[str, str] = {}

    async def take(self, files: Iterator[str]) -> int:
        """Put some of the files in, and note those that cannot be read; how many were taken."""
        documents, taken = await to_thread.run_sync(self._read, files)
        self.added = self.added.plus(await self._search.add(documents))
        return taken

    def keeps(self, path: str) -> bool:
        """Whether a file is still there, as far as that can be known."""
        return path in self._files or any(path.startswith(f"{each}/") for each in self.skipped)

    def _read(self, files: Iterator[str]) -> tuple[list[Document], int]:
        """On a thread: the documents of the next files, and how many files these are."""
        documents: list[Document] = []
        taken = characters = 0
        for path in islice(files, BATCH):
            taken += 1
            try:
                found = read_document(self._folder, path, self._metadata, self._visibility)
            except OSError as error:
                self.skipped[path] = error.strerror or type(error).__name__
                continue
            except ValueError:
                self.skipped[path] = "it is not text in UTF-8"
                continue
            documents.append(found)
            characters += len(found.text)
            if characters >= CHARACTERS:
                break
        return documents, taken


@dataclass(frozen=True, kw_only=True)
class IngestCommand(Command):
    """Put the texts below a folder into a collection; what is there unchanged stays."""

    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder of text and Markdown files.")
    ]
    collection: Annotated[
        str, typer.Option(metavar="NAME", callback=as_text, help="Which collection.")
    ]
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            callback=as_text,
            help="Where collections are, instead of TURNLOOM_VECTORS or "
            "sqlite:.turnloom/vectors.db.",
        ),
    ] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="What filters find these by; may be repeated."),
    ] = None
    visibility: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            callback=as_text,
            help="Who finds these: public (all of the tenant), private:AGENT,…, "
            "labelled:LABEL,…, tenant:NAME or shared (all tenants).",
        ),
    ] = "public"
    app_id: AppId = LOCAL
    tokens: Annotated[int, typer.Option(metavar="N", help="How long chunks are at most.")] = (
        Chunking().tokens
    )
    overlap: Annotated[
        int, typer.Option(metavar="N", help="How much of one chunk the next repeats at most.")
    ] = Chunking().overlap
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove what came from this folder and is gone from it."),
    ] = False
    json: Json = False

    def carry_out(self, terminal: Terminal) -> int:
        """Put all files in; 1 if one cannot be read."""
        return asyncio.run(self._ingest(terminal))

    async def _ingest(self, terminal: Terminal) -> int:
        files, links = texts_below(self.folder)
        about = self._metadata(), visibility_of(self.visibility, "documents")
        chosen = settings({"vectors": self.vectors})
        if chosen.vectors == "memory":
            raise UsageError(
                "Collections in memory end with this command. Say where to keep them: "
                "`--vectors sqlite:FILE`."
            )
        search = open_search(open_vectors(chosen), check_name(self.collection), self._chunking())
        intake = _Intake(self.folder, files, *about, TenantSearch(search, self.app_id))
        for path in links:
            terminal.tell(joined(("skipped ", "yellow"), f"{path}: it is a link"))
        async with aclosing(search):
            with _bar(terminal) as bar:
                task, left = bar.add_task("ingesting", total=len(files)), iter(files)
                while taken := await intake.take(left):
                    bar.advance(task, taken)
            removed = None
            if self.prune:
                removed = await search.prune(root_of(self.folder), intake.keeps, self.app_id)
        self._tell(intake, removed, terminal)
        return 1 if intake.skipped else 0

    def _chunking(self) -> Chunking:
        try:
            return Chunking(tokens=self.tokens, overlap=self.overlap)
        except UsageError as error:
            raise UsageError(
                f"Chunks cannot have {self.tokens} tokens with an overlap of {self.overlap}. "
                f"Take 1 to {LONGEST_CHUNK} tokens, and an overlap below that of 0 or more."
            ) from error

    def _metadata(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for pair in self.metadata or ():
            key, equals, value = pair.partition("=")
            if not key or not equals:
                raise UsageError(
                    f"Metadata {pair!r} is not KEY=VALUE. Write it as in `tenant=acme`."
                )
            if key in found or key == PATH:
                problem = "is the path of each file" if key == PATH else "is given twice"
                raise UsageError(f"Metadata {key!r} {problem}. Take another key for {value!r}.")
            found[key] = value
        return found

    def _tell(self, intake: _Intake, removed: int | None, terminal: Terminal) -> None:
        for path, reason in intake.skipped.items():
            terminal.tell(joined(("skipped ", "yellow"), f"{path}: {reason}"))
        counts = {**intake.added._asdict(), "skipped": len(intake.skipped)}
        if removed is not None:
            counts["removed"] = removed
        if self.json:
            terminal.emit(msgspec.json.encode({"collection": self.collection, **counts}))
            return
        summary = ", ".join(f"{count} {what}" for what, count in counts.items())
        terminal.show(safe(f"{self.collection}: {summary}"))


def _bar(terminal: Terminal) -> Progress:
    """A bar on standard error for eyes; nothing for programs."""
    return Progress(
        console=terminal.err,
        transient=True,
        disable=not terminal.err.is_terminal,
    )
