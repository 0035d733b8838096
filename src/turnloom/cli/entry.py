"""From command-line words to an exit code."""

import gc
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, MutableMapping, Sequence
from errno import ENOSPC, EPIPE
from importlib import import_module, metadata
from itertools import zip_longest
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from turnloom.cli import problems
from turnloom.cli.command import Command
from turnloom.cli.shells import prepare
from turnloom.cli.terminal import Terminal, safe
from turnloom.errors import DefinitionError, NotYours, TurnloomError, UsageError

FAILED, WRONG = 1, 2

# Options that ask for help.
HELP = {"help_option_names": ["--help", "-h"]}

# Codes for an agent without an engine, or whose model cannot be asked.
UNANSWERED = "W050"

# Seconds that threads have to end before the process exits without them.
GRACE = 0.5

# Garbage collector thresholds. Runs make many small objects that live as long as the run;
# collecting after every 700 allocations costs more than a turn.
COLLECTOR = (50_000, 20, 100)

COMMANDS = {
    "run": "RunCommand",
    "check": "CheckCommand",
    "runs": "RunsCommand",
    "explain": "ExplainCommand",
    "replay": "ReplayCommand",
    "backtest": "BacktestCommand",
    "log": "LogCommand",
    "resume": "ResumeCommand",
    "retry": "RetryCommand",
    "fork": "ForkCommand",
    "answer": "AnswerCommand",
    "send": "SendCommand",
    "questions": "QuestionsCommand",
    "cancel": "CancelCommand",
    "index": "IndexCommand",
    "ingest": "IngestCommand",
    "migrate": "MigrateCommand",
    "board list": "BoardListCommand",
    "board query": "BoardQueryCommand",
    "board publish": "BoardPublishCommand",
    "serve": "ServeCommand",
    "show": "ShowCommand",
    "feedback": "FeedbackCommand",
    "schedule list": "ScheduleListCommand",
    "schedule run": "ScheduleRunCommand",
    "schedule cancel": "ScheduleCancelCommand",
    "keys create": "KeysCreateCommand",
    "keys list": "KeysListCommand",
    "keys revoke": "KeysRevokeCommand",
    "store migrate": "StoreMigrateCommand",
    "store copy": "StoreCopyCommand",
    "store verify": "StoreVerifyCommand",
    "store prune": "StorePruneCommand",
    "store removals": "StoreRemovalsCommand",
    "worker": "WorkerCommand",
    "completion": "Completion",
}


# The first words of the commands, which are modules.
NAMES = tuple(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))


class _Commands(MutableMapping[str, Any]):
    """The commands by name, each imported on demand."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in NAMES:
                raise KeyError(name)
            self._made[name] = _make(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


# Options whose value may be left out, and the value then. Typer has no such options.
OPTIONAL = {"--diff": "previous"}


class _SingleCommand(TyperCommand):
    """A command with options whose value may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [*_completed(args)])


def _completed(words: Sequence[str]) -> Iterator[str]:
    """The words, with the values that were left out."""
    for word, following in zip_longest(words, words[1:]):
        yield word
        if word in OPTIONAL and (following is None or following.startswith("-")):
            yield OPTIONAL[word]


def _make(name: str) -> Any:
    """A command, or the group of commands that begin with its name."""
    module = import_module(f"turnloom.cli.commands.{name}")
    if name in COMMANDS:
        alone = typer.Typer(add_completion=False, context_settings=HELP)
        made = getattr(module, COMMANDS[name])
        alone.command(name, cls=_SingleCommand, help=_summary(made))(made)
        return get_command(alone)
    group = typer.Typer(
        name=name,
        help=module.SUMMARY,
        add_completion=False,
        no_args_is_help=True,
        context_settings=HELP,
    )
    for each, made in COMMANDS.items():
        first, _, rest = each.partition(" ")
        if first == name:
            kind = getattr(module, made)
            group.command(rest, help=_summary(kind))(kind)
    return get_command(group)


def _summary(command: Any) -> str:
    """The summary of a command, without line breaks."""
    return " ".join((command.__doc__ or "").split())


class _Group(TyperGroup):
    """The program: it knows the names of its commands before they are imported."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(NAMES)


def _version(wanted: bool) -> None:
    if wanted:
        Terminal().show(safe(f"turnloom {metadata.version('turnloom')}"))
        raise typer.Exit


def _asked(command: Any, *, debug: bool, version: bool) -> tuple[Command, bool]:
    """The command that the words name, and whether they ask for tracebacks."""
    return command, debug or command.debug


_application = typer.Typer(
    cls=_Group,
    add_completion=False,
    no_args_is_help=True,
    result_callback=_asked,
    context_settings=HELP,
)


@_application.callback()
def turnloom(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and the log.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Agent workflows whose context is declared, checked, recorded and explained."""


# Errors of standard output: its reader is gone, or its disk is full.
UNWRITABLE = (EPIPE, ENOSPC)


def main() -> NoReturn:
    """Run the command line, and end the process."""
    gc.set_threshold(*COLLECTOR)
    _heed_termination()
    terminal = Terminal()
    try:
        code = perform(sys.argv[1:], terminal)
        terminal.out.file.flush()
    except OSError as error:
        # What is still buffered must not fail at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), terminal.out.file.fileno())
        code = FAILED
        if error.errno != EPIPE:  # a reader that is gone needs no words
            terminal.fail(f"The output cannot be written: {error.strerror}.")
    _end(code, terminal)


def _heed_termination() -> None:
    """Let SIGTERM stop the process as an interrupt does, also where interrupts are ignored."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A background job of a shell. Blocked, interrupts stay ignored; with a handler, an event
        # loop puts its own in place, which cancels its task wherever the signal meets it.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Stop as an interrupt does: drives are interrupted in order, and can be resumed."""
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):
        interrupt(number, frame)
    else:
        raise KeyboardInterrupt


def _end(code: int, terminal: Terminal) -> NoReturn:
    """End the process, also when a workflow's function ignores cancellation."""
    others = [each for each in threading.enumerate() if each is not threading.main_thread()]
    for thread in others:
        thread.join(0 if thread.daemon else GRACE)
    if any(thread.is_alive() and not thread.daemon for thread in others):
        terminal.out.file.flush()
        terminal.err.file.flush()
        os._exit(code)
    sys.exit(code)


def perform(words: Sequence[str], terminal: Terminal) -> int:
    """Run the command that the words name, and return the exit code."""
    prepare()
    try:
        asked = get_command(_application)(list(words), prog_name="turnloom", standalone_mode=False)
    except typer.TyperException as error:
        if message := error.format_message():
            where = getattr(getattr(error, "ctx", None), "command_path", "turnloom")
            terminal.fail(message, f"`{where} --help` says what there is.")
        return error.exit_code
    if isinstance(asked, int):
        return asked
    command, debug = asked
    return carry_out(command, debug, terminal)


def carry_out(command: Command, debug: bool, terminal: Terminal) -> int:
    """Run a command; errors become sentences and exit codes."""
    handler = logging.StreamHandler() if debug else logging.NullHandler()
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("turnloom").setLevel(logging.DEBUG if debug else logging.WARNING)
    terminal.reserve()
    try:
        return command.carry_out(terminal)
    except KeyboardInterrupt:
        terminal.fail("Interrupted.")
        return FAILED
    except Exception as error:  # shown to the user, in full with --debug
        if isinstance(error, OSError) and error.errno in UNWRITABLE:
            raise
        if debug:
            terminal.tell(safe("".join(traceback.format_exception(error))))
        return _complain(error, terminal)


def _complain(error: Exception, terminal: Terminal) -> int:
    """Print the error, and return its exit code."""
    notes: list[str] = getattr(error, "__notes__", [])
    match error:
        case DefinitionError():
            errors = [each for each in error.diagnostics if each.severity == "error"]
            is_unanswered = bool(errors) and all(each.code == UNANSWERED for each in errors)
            verdict = "cannot run here" if is_unanswered else "does not pass its check"
            terminal.fail(f"The workflow {verdict}.", *notes)
            for problem in error.diagnostics:
                terminal.tell(problems.line(problem))
            return WRONG
        case TurnloomError():
            terminal.fail(str(error), *notes)
            wrong = isinstance(error, UsageError) and not isinstance(error, NotYours)
            return WRONG if wrong else FAILED
        case _:
            what = f"{type(error).__name__}: {error}"
            terminal.fail(f"Turnloom itself failed with {what}. `--debug` shows where.", *notes)
            return FAILED
