"""The OpenAPI document: complete, and true for every role."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.openapi import from_dict
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.serving import ServerProcess, call, server_process
from turnloom.server import openapi

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
ROLES = {"user": "acme:ann:user", "developer": "acme:dev:developer", "admin": "acme:root:admin"}

# Streams do not end by themselves.
ENDLESS = ("follow_runs", "follow_artifacts")
EXAMPLES = 4


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def test_every_operation_is_described() -> None:
    document = openapi()
    named = [each["operationId"] for each in operations(document)]
    assert len(set(named)) == len(named) > 45
    assert all(re.fullmatch("[a-z_]+", each) for each in named)
    for each in operations(document):
        assert each["summary"] and each["tags"]
        assert {"400", "401", "403", "404", "413", "422", "429", "503"} <= each["responses"].keys()
        for status, response in each["responses"].items():
            assert "content" in response or status == "204", (each["operationId"], status)
    text = json.dumps(document)
    refs = {*re.findall(r'"#/components/schemas/([^"]+)"', text)}
    assert refs <= document["components"]["schemas"].keys()
    assert len(document["components"]["schemas"]["RunEvent"]["oneOf"]) > 90


@pytest.mark.doors
@pytest.mark.timeout(900)
@pytest.mark.parametrize("role", ROLES)
async def test_what_the_document_says_is_true_for_every_role(tmp_path: Path, role: str) -> None:
    limits = ("requests_per_minute", "starts_per_minute", "failures_per_minute")
    lines = "\n".join(f"{name} = 1_000_000" for name in limits)
    (tmp_path / "turnloom.toml").write_text(f"[server]\n{lines}\n")
    async with server_process(tmp_path) as server:
        tokens = await server.keys(**ROLES)
        await server.start()
        known = await material(server, tokens)
        await anyio.to_thread.run_sync(try_all, server.url, tokens[role], known)
        own = {"Authorization": f"Bearer {tokens[role]}"}
        status, me = await call(server, "GET", "/me", headers=own)
        assert (status, me.get("role")) == (200, role), me
        assert "Traceback" not in (tmp_path / "errors").read_text()


async def material(server: ServerProcess, tokens: dict[str, str]) -> dict[str, list[str]]:
    """Names that exist."""
    known: dict[str, list[str]] = {"run": [], "name": ["Chat", "adding", "mood"], "id": ["n1"]}
    for token in tokens.values():
        headers = {"Authorization": f"Bearer {token}"}
        for workflow in ("Chat", "Short", "adding"):
            _, run = await call(server, "POST", "/runs", {"workflow": workflow}, headers)
            known["run"].append(run["run"])
    note = {"board": "notes-acme", "type": "Note", "payload": {"text": "x"}, "id": "n1"}
    await call(server, "POST", "/board/artifacts", note, {"Authorization": f"Bearer {token}"})
    return known


def try_all(url: str, token: str, known: dict[str, list[str]]) -> None:
    """Call every operation with requests that the document allows, and some that it does not."""
    schema = from_dict(openapi())
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.definition.raw["operationId"] in ENDLESS:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try_one(operation, mode, url, token, known)


def try_one(
    operation: Any, mode: GenerationMode, url: str, token: str, known: dict[str, list[str]]
) -> None:
    numbers = iter(range(1000))

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def attempt(case: schemathesis.Case) -> None:
        number = next(numbers)
        for name, values in known.items():
            if name in (case.path_parameters or {}) and number % 3:
                case.path_parameters[name] = values[number % len(values)]
        case.headers.pop("Authorization", None)
        response = case.call(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        case.validate_response(response, checks=CHECKS)

    try:
        attempt()
    except Unsatisfiable:
        return  # nothing that is not allowed can be made
