"""`turnloom board`: read and publish artifacts."""

import asyncio
import re
import sys
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import msgspec
import typer
from pydantic import create_model
from rich.text import Text

from turnloom.app import Board, Loom
from turnloom.board.spec import (
    After,
    BoardHandle,
    Envelope,
    FilterConfig,
    Operator,
    Reader,
    TagFilter,
    Visibility,
    artifact_type,
)
from turnloom.cli import invocation
from turnloom.cli.boards import opened_board
from turnloom.cli.command import Command, as_text
from turnloom.cli.stored import AppId, Json, StoreFile, masked, present_store
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.times import instant
from turnloom.cli.visibility import visibility_of
from turnloom.errors import InvalidArtifact, UnknownType, UsageError
from turnloom.explain.spec.text import moment, one_line
from turnloom.kernel.values import as_data, nearest
from turnloom.log.spec import LOCAL

SUMMARY = "List and query artifacts on a board, and publish one."

_SIGNS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SIGNED = re.compile(r"(?P<path>[^\s=!<>]+)\s*(?P<sign>!=|<=|>=|=|<|>)\s*(?P<value>.+)", re.DOTALL)

BoardName = Annotated[
    str | None,
    typer.Argument(
        metavar="BOARD",
        help="`FILE.py:NAME`: a board, or a function that declares one for an app; without it, "
        "what is in the store.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class BoardCommand(Command):
    """A command on one board."""

    store: StoreFile = None
    app_id: AppId = LOCAL
    json: Json = False

    def carry_out(self, terminal: Terminal) -> int:
        """Run the command with the board open, and return the exit code."""
        try:
            return asyncio.run(self.act(terminal))
        except (InvalidArtifact, UnknownType) as error:  # the arguments are wrong, not the command
            raise UsageError(str(error)) from error

    @abstractmethod
    async def act(self, terminal: Terminal) -> int:
        """Run the command, and return the exit code."""

    @property
    def reads(self) -> bool:
        """Whether it only reads, so that it creates no store."""
        return True

    @asynccontextmanager
    async def open(self, path: str | None) -> AsyncGenerator[Board]:
        """The board of a file of code, or one without agents on the store."""
        if path is not None:
            async with opened_board(path, self.store, self.app_id, reads=self.reads) as board:
                yield board
            return
        async with Loom(store=present_store(self.store)) as app:
            yield app.board(app_id=self.app_id)


@dataclass(frozen=True, kw_only=True)
class BoardListCommand(BoardCommand):
    """List artifacts, the newest first: what they are, who took them, who made them, who may see
    them, and what they are about."""

    board: BoardName = None
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME", callback=as_text, help="Read as this agent; by default, what is public."
        ),
    ] = ""
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="A label that the reader has; may be repeated."),
    ] = None
    developer: Annotated[
        bool, typer.Option("--developer", help="Read everything of the tenant.")
    ] = False
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 20
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue after the page that printed it.")
    ] = None

    async def act(self, terminal: Terminal) -> int:
        """Print one page."""
        asked = self.filter()
        async with self.open(self.board) as board:
            reader = Reader(
                agent=self.agent,
                labels=frozenset(self.label or ()),
                tenant=board.app_id,
                role="developer" if self.developer else "user",
            )
            handle = board.read_as(reader)
            if self.board is None and asked.types:
                await self._know_types(board, reader, asked.types)
            items, total, cursor = await self._read(handle, asked)
        if self.json:
            page = {"artifacts": items, "total": total, "cursor": cursor}
            terminal.emit(msgspec.json.encode(page))
            return 0
        if not items:
            terminal.tell(safe("No artifacts are found that this reader may see."))
            return 0
        _show(items, terminal, payload=self.shows_payload)
        if cursor is not None:
            shown = f"{len(items)}" if total is None else f"{len(items)} of {total}"
            terminal.tell(safe(f"{shown} are shown. The next ones:", "dim"))
            terminal.tell(joined("  ", (self._next(cursor), "bold")))
        return 0

    async def _read(
        self, handle: BoardHandle, asked: FilterConfig
    ) -> tuple[list[Envelope], int | None, str | None]:
        """As many artifacts as the limit allows, how many there are in all, and the cursor behind
        them. Conditions on payloads are not counted: that would compare all artifacts."""
        found, total = await handle.query_artifacts(
            asked, embed_meta=True, cursor=self.cursor, count=not asked.where
        )
        items = [*found]
        while found.cursor is not None and len(items) < self.limit:
            rest = asked.model_copy(update={"limit": self.limit - len(items)})
            found, _ = await handle.query_artifacts(rest, embed_meta=True, cursor=found.cursor)
            items += found
        return cast(list[Envelope], items), total, found.cursor

    @property
    def shows_payload(self) -> bool:
        """Whether the table shows payloads."""
        return False

    def filter(self) -> FilterConfig:
        """The filter of the options."""
        return FilterConfig(limit=self.limit, order="-created_at")

    async def _know_types(self, board: Board, reader: Reader, asked: Set[str]) -> None:
        """Let the types that are in the store be known by name, where no program declares them.

        Raises:
            UnknownType: there are no artifacts of such a type that the reader may see.
        """
        stored = [*(await board.read_as(reader).summary()).by_type]
        simple = [name.rpartition(".")[2] for name in stored]
        for name in asked:
            if name not in stored and name not in simple:
                near = nearest(name, [*stored, *simple])
                there = f"Stored: {', '.join(stored)}." if stored else "The board is empty."
                remedy = f"Did you mean {near!r}?" if near else there
                raise UnknownType(f"No artifacts of type {name!r}. {remedy}")
        for name in stored:
            board.register(artifact_type(name=name)(create_model("Stored")))

    def _next(self, cursor: str) -> str:
        """The command line for the next page."""
        words = [*sys.argv[1:]]
        if "--cursor" in words:
            at = words.index("--cursor")
            del words[at : at + 2]
        words = [each for each in words if not each.startswith("--cursor=")]
        return invocation.again(*map(masked, words), "--cursor", cursor)


@dataclass(frozen=True, kw_only=True)
class BoardQueryCommand(BoardListCommand):
    """Query artifacts by what they are, as a reader sees them."""

    type: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="Of this type, by its full or simple name; repeatable."),
    ] = None
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="With all of these tags; repeatable.")
    ] = None
    without_tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="With none of these; repeatable.")
    ] = None
    by: Annotated[
        list[str] | None, typer.Option(metavar="AGENT", help="Made by this agent; repeatable.")
    ] = None
    correlation: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="About this correlation.")
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="On the payload, as in 'price.amount >= 5', 'name = \"Ann\"' or 'note exists'; "
            "repeatable.",
        ),
    ] = None
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Made then or later, in ISO 8601.")
    ] = None
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Made then or earlier, in ISO 8601.")
    ] = None
    oldest: Annotated[bool, typer.Option("--oldest", help="The oldest ones first.")] = False

    @property
    def shows_payload(self) -> bool:
        """The table shows payloads."""
        return True

    def filter(self) -> FilterConfig:
        """The filter of the options.

        Raises:
            UsageError: a condition or a time is invalid.
        """
        tags = None
        if self.tag or self.without_tag:
            include = frozenset(self.tag) if self.tag else None
            exclude = frozenset(self.without_tag or ())
            tags = TagFilter(include=include, exclude=exclude, match="all")
        return FilterConfig(
            types=frozenset(self.type) if self.type else None,
            tags=tags,
            produced_by=frozenset(self.by) if self.by else None,
            correlation_id=self.correlation,
            where=[_condition(each) for each in self.where or ()],
            since=instant(self.since, "--since"),
            until=instant(self.until, "--until"),
            limit=self.limit,
            order="created_at" if self.oldest else "-created_at",
        )


@dataclass(frozen=True, kw_only=True)
class BoardPublishCommand(BoardCommand):
    """Publish an artifact on the board of a file of code, and wait until nothing is going on."""

    board: Annotated[
        str,
        typer.Argument(
            metavar="BOARD",
            help="`FILE.py:NAME`: a board, or a function that declares one for an app.",
        ),
    ]
    type: Annotated[
        str, typer.Argument(metavar="TYPE", callback=as_text, help="Its full or simple name.")
    ]
    payload: Annotated[
        str,
        typer.Argument(
            metavar="JSON|@FILE|-",
            callback=as_text,
            help="The payload: JSON, the file that holds it, or `-` for standard input.",
        ),
    ]
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="A tag of it; repeatable.")
    ] = None
    visibility: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            callback=as_text,
            help="Who sees it: public (all of the tenant), private:AGENT,…, labelled:LABEL,…, "
            "tenant:NAME or shared (all tenants).",
        ),
    ] = "public"
    correlation: Annotated[
        str | None, typer.Option(metavar="ID", callback=as_text, help="What it is about.")
    ] = None
    id: Annotated[
        str | None,
        typer.Option(metavar="ID", callback=as_text, help="Its id; again changes nothing."),
    ] = None
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Whether to wait until all is idle.")
    ] = True
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.001, help="How long to wait at most.")
    ] = None

    @property
    def reads(self) -> bool:
        """It creates the store that it publishes to."""
        return False

    async def act(self, terminal: Terminal) -> int:
        """Publish it, and report what happened; 1 if something failed."""
        payload = _payload(self.payload)
        visibility = visibility_of(self.visibility, "artifacts")
        failures: Sequence[Exception] = ()
        async with self.open(self.board) as board:
            artifact = await board.publish(
                board.value(self.type, payload),
                tags=frozenset(self.tag or ()),
                visibility=visibility,
                correlation_id=self.correlation,
                id=self.id,
            )
            if self.wait:
                failures = await self._settle(board)
            about = FilterConfig(correlation_id=artifact.correlation_id, since=artifact.created_at)
            found = [each async for each in board.iter_artifacts(about, embed_meta=True)]
        later = [each for each in cast(Sequence[Envelope], found) if each.id != artifact.id]
        if self.json:
            result = {"artifact": artifact, "published": later, "failures": [*map(str, failures)]}
            terminal.emit(msgspec.json.encode(result))
            return 1 if failures else 0
        terminal.show(joined("Published ", (artifact.id, "bold"), f" in run {artifact.run}."))
        if later:
            _show(later, terminal, payload=True)
        for each in failures:
            terminal.fail(str(each))
        return 1 if failures else 0

    async def _settle(self, board: Board) -> Sequence[Exception]:
        """Wait until the board is idle; returns the failures."""
        try:
            failed = await board.run_until_idle(self.timeout, raise_errors=False)
        except TimeoutError:
            return [
                UsageError(
                    f"The board is not idle after {self.timeout:g} s. What is going on stops here; "
                    "a program that declares the board continues it: `await board.resume()`."
                )
            ]
        return failed.exceptions if failed is not None else ()


def _condition(said: str) -> tuple[str, Operator, Any]:
    """A condition on the payload, as an option says it.

    Raises:
        UsageError: it is none.
    """
    path, _, rest = said.strip().partition(" ")
    word, _, value = rest.strip().partition(" ")
    if word == "exists" and path:
        return path, "exists", _value(value.strip() or "true")
    if word in get_args(Operator) and path and value.strip():
        return path, cast(Operator, word), _value(value.strip())
    if signed := _SIGNED.fullmatch(said.strip()):
        operator = cast(Operator, _SIGNS[signed["sign"]])
        return signed["path"], operator, _value(signed["value"].strip())
    raise UsageError(
        f"{said!r} is no condition. Write a path, an operator and a value, as in "
        f"'price.amount >= 5'. Operators: {', '.join((*_SIGNS, *get_args(Operator)))}."
    )


def _value(said: str) -> Any:
    """A JSON value, or else a text."""
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError:
        return said


def _payload(said: str) -> Any:
    """A payload out of an argument, a file or standard input.

    Raises:
        UsageError: it cannot be read, or is not JSON.
    """
    where = "Standard input" if said == "-" else said[1:] if said.startswith("@") else "The payload"
    try:
        if said == "-":
            text = sys.stdin.buffer.read()
        else:
            text = Path(said[1:]).read_bytes() if said.startswith("@") else said.encode()
        return msgspec.json.decode(text)
    except OSError as error:
        raise UsageError(f"{where!r} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f'{where} is not JSON: {error}. Write an object, as in \'{{"item": "hat"}}\'.'
        ) from error


def _show(items: Sequence[Envelope], terminal: Terminal, *, payload: bool) -> None:
    """Print artifacts as a table."""
    names = ("id", "type", "state", "by", "visibility", "correlation", "made")
    columns, cells = ((*names, "payload"), _with_payload) if payload else (names, _about)
    for part in lay_out(columns, items, cells, terminal.out.width):
        terminal.show(part)


def _about(each: Envelope) -> tuple[str | Text, ...]:
    result = each.type, _state(each), each.produced_by, _who(each.visibility)
    return safe(each.id, "bold"), *result, each.correlation_id or "", moment(each.created_at)


def _with_payload(each: Envelope) -> tuple[str | Text, ...]:
    return *_about(each), one_line(as_data(cast(Any, each.payload)))


def _state(each: Envelope) -> str:
    """Who took an artifact, if anyone."""
    takers = dict.fromkeys(taken.agent for taken in each.consumptions)
    return f"taken by {', '.join(takers)}" if takers else "not taken"


def _who(visibility: Visibility) -> str:
    """Who may see an artifact, in the words of options."""
    if isinstance(visibility, After):
        return f"after {moment(visibility.at)}: {_who(visibility.then)}"
    kind = type(visibility).__name__.lower()
    fields = [getattr(visibility, name) for name in visibility.__struct_fields__]
    said = [value if isinstance(value, str) else ",".join(sorted(value)) for value in fields]
    return ":".join([kind, *said])
