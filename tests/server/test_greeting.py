"""What `serve` says when it begins, and the page that describes the API."""

import asyncio
import os
import re
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.served import Client, site
from turnloom.server import openapi

PATIENCE = 60.0

APP = """
from turnloom import Loom
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec

store = MemoryStore(codec())
{change}
app = Loom(store=store)
"""


async def greeting(folder: Path, change: str) -> str:
    """What a server says up to the command that makes a key, or beyond."""
    (folder / "served.py").write_text(APP.format(change=change))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "turnloom", "serve", "--port", "0", "--app", "served:app"),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name[:3] != "COV"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while "keys create" not in lines:
                lines += (await process.stdout.readline()).decode()
            process.terminate()
            return lines + (await process.stdout.read()).decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize(("change", "is_said"), [("", False), ("store.audit = None", True)])
async def test_a_store_without_an_audit_trail_is_named(
    tmp_path: Path, change: str, is_said: bool
) -> None:
    said = await greeting(tmp_path, change)
    address = re.search(r"http://127\.0\.0\.1:\d+", said)
    assert address is not None and f"{address[0]}/docs" in said
    assert ("`audit`" in said) is is_said


async def test_the_page_describes_every_operation(tmp_path: Path) -> None:
    document = openapi()
    async with site(tmp_path, keys=True) as at:
        page = await Client(at.api).get("/docs")
    assert page.status == 200
    text = page.body.decode()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in text and operation["operationId"] in text
    for name in document["components"]["schemas"]:
        assert f'id="schema-{name}"' in text


async def test_the_page_loads_nothing_and_runs_nothing(tmp_path: Path) -> None:
    async with site(tmp_path, keys=True) as at:
        page = await Client(at.api).get("/docs")
    text, policy = page.body.decode(), page.headers["content-security-policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert b64encode(sha256(style.encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src" not in policy
    assert not re.search(r"<script|<img|<link|src=|https?://|style=", text)
