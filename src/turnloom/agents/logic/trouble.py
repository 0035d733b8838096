"""What the clients of models raise, by what they have in common."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from math import isfinite
from ssl import SSLEOFError, SSLError, SSLSyscallError, SSLZeroReturnError
from typing import Any, cast

from turnloom.agents.spec import Patience
from turnloom.errors import ContextTooLarge, EngineError, TurnloomError
from turnloom.kernel.values import as_object, said

# Refusals that are not for good, beside the errors of servers: too slow, in conflict, too many.
PASSING = (408, 409, 425, 429)

# A refusal for too many requests that is for good: nobody pays for them.
QUOTA = "insufficient_quota"

# What providers say of a request that does not fit into the window of a model, in small letters.
TOO_LARGE = (
    "context_length_exceeded",
    "context length",
    "context limit",
    "context size",
    "context window",
    "input is too long",
    "input token count",
    "input tokens exceeded",
    "prompt is too long",
    "reduce the length of the messages",
    "too many tokens",
)

# The statuses with which they say it; too many tokens in a minute are another matter.
REFUSED = (400, 413, 422)

# What no request makes better: whoever asks is wrong, or the answer is.
MISTAKES = (AttributeError, ImportError, LookupError, TypeError, ValueError)

# A connection that broke, by TLS's words for it; the rest of its errors are of keys and versions.
BROKEN = (SSLEOFError, SSLSyscallError, SSLZeroReturnError)

# A variable that a client lacks, in a sentence that also speaks of the client's own arguments.
LACKING = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b(?=.*\benv(?:ironment)? variable)", re.DOTALL
)


# What packages are called that a client lacks: in a command, or in a sentence.
INSTALLING = re.compile(r'pip install "?([\w.,\[\]-]+)"?')
LACKED = re.compile(r"[`']([\w.-]+)[`'](?=.* to use )")


def reason_of(error: BaseException) -> str:
    """Why a model cannot be asked: the variable or the package that is missing, without what
    its client advises programs of its own, or else what the client says."""
    words = said(error)
    if found := LACKING.search(words):
        return unset(found[1])
    packages = INSTALLING.findall(words) or LACKED.findall(words)
    if isinstance(error, ImportError) and packages:
        listed = " ".join(f'"{each}"' if "[" in each else each for each in packages)
        return f"Its provider needs what is not installed: pip install {listed}"
    return words


def unset(*variables: str) -> str:
    """That a model needs one of these variables of the environment."""
    is_key = all(each.endswith(("_KEY", "_TOKEN")) for each in variables)
    what = "key" if is_key else "setting"
    return f"Its {what} is not in the environment: set {' or '.join(variables)}."


def may_pass(error: BaseException) -> bool:
    """Whether the same request may be answered when it is made again: by its status, or as there
    was no response at all."""
    if (status := status_of(error)) is not None:
        return passes(status) and getattr(error, "code", None) != QUOTA
    if is_untrusted(error):
        return False
    is_mistake = isinstance(error, MISTAKES) and not is_garbled(error)
    return isinstance(error, Exception) and not is_mistake


def is_garbled(error: BaseException) -> bool:
    """Whether what came over the connection is no data: another answer may be."""
    return any(isinstance(each, JSONDecodeError) for each in causes(error))


def is_untrusted(error: BaseException) -> bool:
    """Whether no secure connection can be made: by its certificate, or as the other side has no
    TLS. The next request would end the same way."""
    return any(isinstance(e, SSLError) and not isinstance(e, BROKEN) for e in causes(error))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it came from, also where a library keeps that from tracebacks."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def passes(status: int | None) -> bool:
    """Whether a provider that refuses with that status may answer later."""
    return status is not None and (status in PASSING or status >= 500)


def status_of(error: BaseException) -> int | None:
    """The status with which a provider refused, by either name that libraries have for it."""
    refused = _refusal(error)
    return None if refused is None else _status(refused)


def _refusal(error: BaseException) -> BaseException | None:
    """The error that has a status, among those that an error came from."""
    return next((each for each in causes(error) if _status(each) is not None), None)


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", getattr(error, "status", None))
    return status if isinstance(status, int) else None


def asked_pause(error: BaseException | None, now: datetime) -> float:
    """The seconds that a provider asks to be left alone for, as a library or its response says."""
    if (seconds := getattr(error, "retry_after", None)) is not None:
        return float(seconds)
    response = getattr(error, "response", None)
    headers = cast("Mapping[str, str]", getattr(response, "headers", None) or {})
    asked = headers.get("retry-after", "")
    try:
        seconds = (
            float(asked) if asked[:1].isdigit() else _until(asked, headers.get("date", ""), now)
        )
    except ValueError:  # neither seconds nor a date; the usual pause is as good
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def _until(date: str, sent: str, now: datetime) -> float:
    """The seconds to a date, by the clock of the server that named it, or else by ours."""
    try:
        now = _moment(sent)
    except ValueError:  # the server does not say what the time is
        pass
    return (_moment(date) - now).total_seconds()


def _moment(date: str) -> datetime:
    """A date of a header, with its zone, which `-0000` leaves open."""
    read = parsedate_to_datetime(date)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def failure(error: BaseException, model: str, tried: int, patience: Patience) -> TurnloomError:
    """The error of a call whose model does not answer, with what the provider says."""
    kind = ContextTooLarge if is_too_large(error) else EngineError
    return kind(told(error, model, tried, patience))


def is_too_large(error: BaseException) -> bool:
    """Whether a provider refused a request that does not fit into the window of its model."""
    refused = _refusal(error)
    if refused is None or _status(refused) not in REFUSED:
        return False
    words = f"{getattr(refused, 'code', '')} {_message(refused)} {refused}".lower()
    return any(phrase in words for phrase in TOO_LARGE)


def told(error: BaseException, model: str, tried: int, patience: Patience) -> str:
    """What went wrong, with what the provider says to it."""
    who = f"Model {model!r}, asked {tried} times," if tried > 1 else f"Model {model!r}"
    remedy = ". Let `Patience` be longer." if isinstance(error, TimeoutError) else ""
    return f"{who} {describe(error, patience)}{remedy}"


def describe(error: BaseException, patience: Patience) -> str:
    """What a model did instead of answering, with what its provider says."""
    if isinstance(error, TimeoutError):
        return f"was silent for {patience.timeout:g} s"
    if (refused := _refusal(error)) is not None:
        return f"refused with status {_status(refused)}: {_message(refused)}"
    return f"gave no answer: {_reason(error)}"


def _reason(error: BaseException) -> str:
    """What an error says, and what it began with: libraries call many things an error of the
    connection."""
    *_, first = causes(error)
    reason = said(error) if said(first) in said(error) else f"{said(error)} {said(first)}"
    if is_untrusted(error):
        reason += " Correct the address, or have this machine trust the server's certificate."
    return reason


def without_keys(text: str) -> str:
    """What an engine says of its trouble, without keys that providers repeat in refusals."""
    return _KEY.sub(lambda found: f"{found[1] or ''}{HIDDEN}", text)


# What stands in place of a key.
HIDDEN = "⟨hidden:key⟩"

# A key by what is said before it, or by what vendors let keys begin with. Words have no digits.
_KEY = re.compile(
    r"""((?:\bbearer\s|\bapi[ _-]?key\b[^\n:=]{0,20}[:=])\s*["'`]?)"""
    r"""(?=[^\s"'`]*[\d*])[^\s"'`,;)}]{8,}"""
    r"""|\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp)[-_]|AIza)(?=[\w*.-]*\d)[\w*.-]{12,}""",
    re.IGNORECASE,
)


def _message(error: Any) -> str:
    """What the body of a refusal says to people, or else the library."""
    body = getattr(error, "body", None) or getattr(error, "message", error)
    given = as_object(body) or {}
    inner = as_object(given.get("error")) or given
    return str(inner.get("message", body))
