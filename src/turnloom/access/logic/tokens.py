"""Tokens of API keys, and checks of names and entries."""

import hmac
import re
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256

from turnloom.access.spec import (
    ACTIONS,
    MOST_NAME,
    OUTCOMES,
    AuditEntry,
    AuditFilter,
    StoredKey,
)
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_name, wrong
from turnloom.kernel.markup import visible
from turnloom.kernel.values import nearest

# Scanners for leaked secrets find tokens by this word.
PREFIX = "tlk_"
_TOKEN = re.compile(r"tlk_([0-9A-Za-z]{1,64})_([0-9A-Za-z]{1,128})")

# Compared with when there is no key, so that a miss costs what a hit costs.
NO_DIGEST = sha256(b"no key").hexdigest()


def write_token(id: str, secret: str) -> str:
    """The token of a key: its public id and its secret."""
    return f"{PREFIX}{id}_{secret}"


def id_of(token: str) -> str | None:
    """The public id in a token; None if it is malformed."""
    found = _TOKEN.fullmatch(token)
    return found[1] if found else None


def digest_of(token: str) -> str:
    """The digest that is stored of a token.

    The secret is drawn at random and has 256 bits: no list of guesses reaches it, so that a slow
    or salted hash adds cost to every request and nothing else. The id is part of the digest, so
    that a digest is of no use under another id.
    """
    return sha256(b"turnloom key\0" + token.encode()).hexdigest()


def admits(
    stored: StoredKey | None,
    token: str,
    now: datetime,
    compare: Callable[[bytes, bytes], bool] = hmac.compare_digest,
) -> bool:
    """Whether a token is that of a stored key which is in force.

    The digests are compared in constant time, always, and a missing key is compared too; no other
    check comes first.
    """
    expected = stored.digest if stored is not None else NO_DIGEST
    is_same = compare(expected.encode(), digest_of(token).encode())
    return is_same and stored is not None and stored.key.status(now) == "valid"


def as_label(value: object, what: str) -> str:
    """A name of printable characters, at most 200."""
    name = as_name(value, what)
    if len(name) > MOST_NAME or not name.isprintable() or name != name.strip():
        remedy = f"Give 1 to {MOST_NAME} printable characters, without spaces around them."
        raise wrong(what, value, remedy)
    return name


def plain_entry(entry: AuditEntry) -> AuditEntry:
    """An entry that is safe to print: control characters made visible, long texts cut.

    Raises:
        UsageError: the action or the outcome is unknown.
    """
    if entry.action not in ACTIONS or entry.outcome not in OUTCOMES:
        raise UsageError(f"Unknown action {entry.action!r} or outcome {entry.outcome!r}.")
    return AuditEntry(
        entry.tenant,
        _line(entry.who),
        entry.action,
        _line(entry.what),
        at=entry.at,
        outcome=entry.outcome,
        via=_line(entry.via),
    )


def _line(text: str) -> str:
    shown = visible(text).replace("\n", "␊").replace("\t", "␉")
    return shown if len(shown) <= MOST_NAME else f"{shown[: MOST_NAME - 1]}…"


def as_action(value: object) -> str:
    """An action of the audit trail."""
    action = as_name(value, "`action`")
    if action not in ACTIONS:
        near = nearest(action, ACTIONS)
        remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(ACTIONS)}."
        raise UsageError(f"Unknown action {visible(action)!r}. {remedy}")
    return action


def is_chosen(entry: AuditEntry, which: AuditFilter) -> bool:
    """Whether a filter selects an entry."""
    return (
        which.who in (None, entry.who)
        and which.action in (None, entry.action)
        and (which.since is None or which.since <= entry.at)
        and (which.until is None or entry.at <= which.until)
    )
