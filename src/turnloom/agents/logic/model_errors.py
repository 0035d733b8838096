"""Classification of the errors that model clients raise."""

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
from turnloom.kernel.values import as_object, error_text

# Transient client-error statuses: timeout, conflict, too early, rate limit.
PASSING = (408, 409, 425, 429)

# The code of a permanent rate-limit error: the quota is exhausted.
QUOTA = "insufficient_quota"

# Phrases in providers' errors for a request that exceeds the model's window, in lower case.
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

# The statuses of those errors; 429 means too many tokens per minute instead.
REFUSED = (400, 413, 422)

# Errors that a retry cannot fix: the request or the answer is wrong.
MISTAKES = (AttributeError, ImportError, LookupError, TypeError, ValueError)

# TLS errors of a broken connection; the others concern certificates and versions.
BROKEN = (SSLEOFError, SSLSyscallError, SSLZeroReturnError)

# The environment variable in a client's message about a missing key.
LACKING = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b(?=.*\benv(?:ironment)? variable)", re.DOTALL
)


# The packages in a client's message about missing ones: in a command, or in a sentence.
INSTALLING = re.compile(r'pip install "?([\w.,\[\]-]+)"?')
LACKED = re.compile(r"[`']([\w.-]+)[`'](?=.* to use )")


def reason_of(error: BaseException) -> str:
    """Why a model cannot be called: the missing variable or package, or the client's message."""
    words = error_text(error)
    if found := LACKING.search(words):
        return unset(found[1])
    packages = INSTALLING.findall(words) or LACKED.findall(words)
    if isinstance(error, ImportError) and packages:
        listed = " ".join(f'"{each}"' if "[" in each else each for each in packages)
        return f"A package of its provider is missing. Install it: pip install {listed}"
    return words


def unset(*variables: str) -> str:
    """The message that a model needs one of these environment variables."""
    is_key = all(each.endswith(("_KEY", "_TOKEN")) for each in variables)
    what = "API key" if is_key else "setting"
    return f"Its {what} is missing. Set {' or '.join(variables)}."


def may_pass(error: BaseException) -> bool:
    """Whether a retry may succeed: the status is transient, or there was no response."""
    if (status := status_of(error)) is not None:
        return passes(status) and getattr(error, "code", None) != QUOTA
    if is_untrusted(error):
        return False
    is_mistake = isinstance(error, MISTAKES) and not is_garbled(error)
    return isinstance(error, Exception) and not is_mistake


def is_garbled(error: BaseException) -> bool:
    """Whether the response was not valid JSON, so that a retry may succeed."""
    return any(isinstance(each, JSONDecodeError) for each in causes(error))


def is_untrusted(error: BaseException) -> bool:
    """Whether no TLS connection can be made: an invalid certificate, or a server without TLS. A
    retry cannot succeed."""
    return any(isinstance(e, SSLError) and not isinstance(e, BROKEN) for e in causes(error))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes, including suppressed ones."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def passes(status: int | None) -> bool:
    """Whether a status is transient."""
    return status is not None and (status in PASSING or status >= 500)


def status_of(error: BaseException) -> int | None:
    """The HTTP status of a provider's error, under either name that libraries use."""
    refused = _refusal(error)
    return None if refused is None else _status(refused)


def _refusal(error: BaseException) -> BaseException | None:
    """The error with a status among an error and its causes."""
    return next((each for each in causes(error) if _status(each) is not None), None)


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", getattr(error, "status", None))
    return status if isinstance(status, int) else None


def asked_pause(error: BaseException | None, now: datetime) -> float:
    """The pause in seconds that a provider asks for, from the error or its response headers."""
    if (seconds := getattr(error, "retry_after", None)) is not None:
        return float(seconds)
    response = getattr(error, "response", None)
    headers = cast("Mapping[str, str]", getattr(response, "headers", None) or {})
    asked = headers.get("retry-after", "")
    try:
        seconds = (
            float(asked) if asked[:1].isdigit() else _until(asked, headers.get("date", ""), now)
        )
    except ValueError:  # neither seconds nor a date: use the default pause
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def _until(date: str, sent: str, now: datetime) -> float:
    """The seconds until a date, by the server's clock if it sends one, else by ours."""
    try:
        now = _moment(sent)
    except ValueError:  # the server does not send its time
        pass
    return (_moment(date) - now).total_seconds()


def _moment(date: str) -> datetime:
    """A date of a header with its zone; `-0000` means UTC."""
    read = parsedate_to_datetime(date)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def failure(error: BaseException, model: str, tried: int, patience: Patience) -> TurnloomError:
    """The error of a failed model call, with the provider's message."""
    kind = ContextTooLarge if is_too_large(error) else EngineError
    return kind(failure_message(error, model, tried, patience))


def is_too_large(error: BaseException) -> bool:
    """Whether a provider rejected a request that exceeds the model's window."""
    refused = _refusal(error)
    if refused is None or _status(refused) not in REFUSED:
        return False
    words = f"{getattr(refused, 'code', '')} {_message(refused)} {refused}".lower()
    return any(phrase in words for phrase in TOO_LARGE)


def failure_message(error: BaseException, model: str, tried: int, patience: Patience) -> str:
    """The message of a failed model call, with the provider's message."""
    who = f"Model {model!r}, called {tried} times," if tried > 1 else f"Model {model!r}"
    remedy = ". Raise `timeout` of its `Patience`." if isinstance(error, TimeoutError) else ""
    return f"{who} {describe(error, patience)}{remedy}"


def describe(error: BaseException, patience: Patience) -> str:
    """The failure of a model call, with the provider's message."""
    if isinstance(error, TimeoutError):
        return f"did not respond within {patience.timeout:g} s"
    if (refused := _refusal(error)) is not None:
        return f"returned status {_status(refused)}: {_message(refused)}"
    return f"failed: {_reason(error)}"


def _reason(error: BaseException) -> str:
    """The message of an error and of its root cause: libraries report many errors as connection
    errors."""
    *_, first = causes(error)
    reason = (
        error_text(error)
        if error_text(first) in error_text(error)
        else f"{error_text(error)} {error_text(first)}"
    )
    if is_untrusted(error):
        reason += " Correct the address, or trust the server's certificate on this machine."
    return reason


def without_keys(text: str) -> str:
    """An engine's error message with API keys masked; providers repeat them in errors."""
    return _KEY.sub(lambda found: f"{found[1] or ''}{HIDDEN}", text)


# The replacement for a key.
HIDDEN = "⟨hidden:key⟩"

# A key by the words before it or by its vendor's prefix. It has digits, unlike words.
_KEY = re.compile(
    r"""((?:\bbearer\s|\bapi[ _-]?key\b[^\n:=]{0,20}[:=])\s*["'`]?)"""
    r"""(?=[^\s"'`]*[\d*])[^\s"'`,;)}]{8,}"""
    r"""|\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp)[-_]|AIza)(?=[\w*.-]*\d)[\w*.-]{12,}""",
    re.IGNORECASE,
)


def _message(error: Any) -> str:
    """The message in the body of an error, or else that of the library."""
    body = getattr(error, "body", None) or getattr(error, "message", error)
    given = as_object(body) or {}
    inner = as_object(given.get("error")) or given
    return str(inner.get("message", body))
