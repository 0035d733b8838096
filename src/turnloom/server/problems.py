"""Errors as problem details (RFC 9457), with the codes of the command line."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from turnloom import errors
from turnloom.errors import DefinitionError, Diagnostic, TurnloomError

MEDIA_TYPE = "application/problem+json"

# The API serves data, which no browser should run, frame or sniff.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
}

log = logging.getLogger("turnloom.server")


class ProblemEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong with a request, or with a workflow: where, what, and the remedy."""

    where: str
    message: str
    code: str = ""
    remedy: str = ""
    severity: str = "error"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was refused. `code` is stable, and the one that the command line shows."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: tuple[ProblemEntry, ...] = ()


class Refusal(Exception):
    """Refuses a request with a problem, and headers such as `Retry-After`."""

    def __init__(
        self,
        status: int,
        detail: str,
        code: str = "TURNLOOM-REQUEST",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = problem(status, detail, code)
        self.headers = dict(headers or {})


# The status of each error; the first class that fits decides.
_STATUSES: Sequence[tuple[type[TurnloomError], int]] = (
    (errors.UnknownRun, 404),
    (errors.UnknownWorkflow, 404),
    (errors.UnknownCollection, 404),
    (errors.NotAuthenticated, 401),
    (errors.Forbidden, 403),
    (errors.NotYours, 403),
    (errors.WorkflowGone, 409),
    (errors.UnknownFlow, 409),
    (errors.PlanChanged, 409),
    (errors.Conflict, 409),
    (errors.ArtifactExists, 409),
    (errors.RunBusy, 409),
    (errors.QuestionExpired, 409),
    (errors.MessageRejected, 409),
    (errors.UnknownKind, 409),
    (errors.UsageError, 400),
    (errors.DefinitionError, 422),
    (errors.MissingContext, 422),
    (errors.InvalidUpdate, 422),
    (errors.InvalidArtifact, 422),
    (errors.UnknownType, 422),
    (errors.WriteRefused, 422),
    (errors.StoreUnavailable, 503),
    (errors.DocumentsUnavailable, 503),
    (errors.CollectionUnavailable, 503),
)

# Seconds after which a client may try again what is unavailable.
PAUSE = "2"

# Sentences for errors whose own one names places of this machine.
_UNSAID: Mapping[type[TurnloomError], str] = {
    errors.StoreUnavailable: "The store cannot be read or written. Try again soon.",
    errors.DocumentsUnavailable: "The document store does not answer. Try again soon.",
    errors.CollectionUnavailable: "The collection cannot be searched. Try again soon.",
    errors.UnknownKind: "The log of this run cannot be read. `turnloom store verify` says why.",
    errors.WorkflowGone: "The workflow of this run is not here any more.",
    errors.UnknownFlow: "The flow of this run is not declared here.",
}

# An absolute path of this machine.
_PATH = re.compile(r"(?<![\w:/.])/(?:[^\s'\"`:,;()]+/)+[^\s'\"`:,;()]*")


def problem(
    status: int, detail: str, code: str, errors: Sequence[ProblemEntry] = (), title: str = ""
) -> Problem:
    """A problem of this status and code; paths of this machine are left out."""
    return Problem(
        f"urn:turnloom:{code.lower()}",
        title or HTTPStatus(status).phrase,
        status,
        without_paths(detail),
        code=code,
        errors=tuple(errors),
    )


def without_paths(text: str) -> str:
    """A text without the folders of absolute paths in it."""
    return _PATH.sub(lambda found: f"…/{found[0].rstrip('/').rpartition('/')[2]}", text)


def problem_of(error: TurnloomError) -> Problem:
    """The problem that an error is."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    unsaid = next((said for kind, said in _UNSAID.items() if isinstance(error, kind)), None)
    if isinstance(error, DefinitionError):
        found = faults_of(error.diagnostics)
        return problem(status, "The workflow does not pass its check.", error.code, found)
    if status == 500:
        log.error("a request failed: %s", error, exc_info=error)
        unsaid = unsaid or "The request failed. The log of the server says why."
    return problem(status, unsaid or str(error), error.code)


def faults_of(diagnostics: Iterable[Diagnostic]) -> list[ProblemEntry]:
    """The diagnostics of a workflow, with files as its folder names them."""
    return [
        ProblemEntry(
            without_paths(f"{each.file}:{each.line}"),
            without_paths(each.message),
            code=each.code,
            remedy=without_paths(each.remedy),
            severity=each.severity,
        )
        for each in diagnostics
    ]


def respond(found: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The response of a problem."""
    extra = {"Retry-After": PAUSE} if found.status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return Response(
        msgspec.json.encode(found),
        found.status,
        media_type=MEDIA_TYPE,
        headers={**HEADERS, **extra, **(headers or {})},
    )


def install(api: FastAPI) -> None:
    """Have an app answer every error with a problem."""
    api.add_exception_handler(TurnloomError, _known)
    api.add_exception_handler(Refusal, _refused)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _unrouted)
    api.add_exception_handler(Exception, _unknown)


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, TurnloomError)
    return respond(problem_of(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return respond(error.problem, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [_fault(each) for each in error.errors()]
    detail = "The request is not valid. `errors` says where."
    return respond(problem(422, detail, "TURNLOOM-REQUEST", found))


def _fault(detail: Mapping[str, Any]) -> ProblemEntry:
    """A fault of a request; its value is not repeated."""
    return ProblemEntry(
        ".".join(map(str, detail["loc"])), str(detail["msg"]), code=str(detail["type"])
    )


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "TURNLOOM-NOT-FOUND" if error.status_code == HTTPStatus.NOT_FOUND else "TURNLOOM-REQUEST"
    return respond(problem(error.status_code, str(error.detail), code), error.headers)


async def _unknown(request: Request, error: Exception) -> Response:
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    detail = "The request failed. The log of the server says why."
    return respond(problem(500, detail, TurnloomError.code))
