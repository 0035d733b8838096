"""Commands on the runs of a store."""

import asyncio
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from turnloom.app import Loom, Run
from turnloom.cli import invocation
from turnloom.cli.command import Command, as_text
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import UnknownRun, UsageError
from turnloom.log.spec import LOCAL
from turnloom.wiring import missing_store, settings

MASK = "***"

# A password may contain any character, so everything up to the last `@` counts.
_USERINFO = re.compile(r"(://[^:/?#@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(
    r"([?&;][^=&;]*(?:pass|pwd|secret|token|key|credential|properties)[^=&;]*=)[^&;]*",
    re.IGNORECASE,
)


def masked(value: Any) -> Any:
    """A value without the passwords of URLs in it."""
    if not isinstance(value, str):
        return value
    return _PARAMETER.sub(rf"\g<1>{MASK}", _USERINFO.sub(rf"\g<1>:{MASK}@", value))


# The most runs that are listed when a prefix is ambiguous.
NAMED = 5

# Seconds until the first note about what is waited for, and between notes.
SOON = 2.0
LATER = 10.0

RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="A run: its id, the beginning of it, or `last`.")
]
StoreFile = Annotated[
    str | None,
    typer.Option(
        metavar="STORE",
        help="Where runs are kept, a file or postgresql://…, instead of TURNLOOM_STORE or "
        ".turnloom/turnloom.db.",
    ),
]
AppId = Annotated[
    str,
    typer.Option(
        "--app-id", metavar="ID", callback=as_text, help="On behalf of which app: its tenant."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True, kw_only=True)
class StoredRunsCommand(Command):
    """A command that opens a store and works on the runs of one tenant."""

    store: StoreFile = None
    app_id: AppId = LOCAL

    def carry_out(self, terminal: Terminal) -> int:
        """Run the command with the store open, and return the exit code."""
        return asyncio.run(self._with_app(terminal))

    async def _with_app(self, terminal: Terminal) -> int:
        async with self.open() as app:
            return await self.act(app, terminal)

    def open(self) -> Loom:
        """The app that it works with."""
        return Loom(store=present_store(self.store))

    @abstractmethod
    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Run the command, and return the exit code."""

    @property
    def is_kept(self) -> bool:
        """Whether other processes find what this one stores."""
        return settings({"store": self.store}).store != "memory"

    @property
    def is_handed_over(self) -> bool:
        """Whether workers drive the runs, and not this process."""
        return settings({"store": self.store}).scheduler == "procrastinate"

    def again(self, *words: str) -> str:
        """A command line that works on the same store and tenant from the same folder; a password
        in it is left to be filled in."""
        store = ("--store", masked(self.store)) if self.store else ()
        tenant = ("--app-id", self.app_id) if self.app_id != LOCAL else ()
        return invocation.again(*words, *store, *tenant)


def present_store(given: str | None) -> str | None:
    """The store to be read: none is made, so one that is not there by default is an empty one.

    Raises:
        UsageError: a store was named that is not there.
    """
    missing = missing_store(given)
    if missing is None:
        return given
    if missing.origin == "default":
        return "memory"
    raise UsageError(
        f"Store {missing.value!r} ({missing.origin}) does not exist. Correct the path; "
        "`turnloom show config` says where it comes from, and `turnloom run` makes a store."
    )


@asynccontextmanager
async def telling_of_waits(run: Run, terminal: Terminal) -> AsyncGenerator[None]:
    """Note which process drives a run while this one waits for it."""
    telling = asyncio.ensure_future(_tell_of_waits(run, terminal))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait({telling})


async def _tell_of_waits(run: Run, terminal: Terminal) -> None:
    await asyncio.sleep(SOON)
    while True:
        if (holder := await run.holder()) is not None:
            terminal.tell(safe(f"Waiting for {holder}.", "yellow"))
        await asyncio.sleep(LATER)


@asynccontextmanager
async def telling_of_workers(run: Run, terminal: Terminal) -> AsyncGenerator[None]:
    """Note that no worker drives a run, if that is so for a while."""
    telling = asyncio.ensure_future(_tell_of_workers(run, terminal))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait({telling})


async def _tell_of_workers(run: Run, terminal: Terminal) -> None:
    while True:
        await asyncio.sleep(LATER / 2)
        if await run.holder() or await run.questions():
            return
        notice = "No worker drives the run. `turnloom worker` starts one."
        terminal.tell(safe(notice, "yellow"))


async def find_run(app: Loom, word: str, app_id: str) -> str:
    """The id that a word stands for among the runs of a tenant: an id, the beginning of one, or
    `last`.

    Raises:
        UsageError: it stands for none, or for several.
    """
    if word == "last":
        for latest in await app.runs(1, app_id=app_id):
            return latest.run
        raise UsageError(no_runs(app_id))
    found: Sequence[str] = []
    if word:
        found = await app.history.named(word, NAMED + 1, app_id=app_id)
    if word in found or len(found) == 1:
        return word if word in found else found[0]
    if not found:
        raise UnknownRun(word)
    some = ", ".join(found[:NAMED]) + (", …" if len(found) > NAMED else "")
    raise UsageError(f"Several runs begin with {word!r}: {some}. Give more of the id.")


def no_runs(app_id: str) -> str:
    """The message for a tenant without runs."""
    return f"App {app_id!r} has no runs in this store. `turnloom run PATH` starts one."
