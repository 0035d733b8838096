"""The page of a run in a real browser: it requests nothing, and hostile texts do nothing."""

import json
import subprocess
from pathlib import Path

import pytest
from anyio import to_thread

from tests.explain.conftest import FLOW, Engine
from tests.support.browsers import browser
from tests.support.folders import write_folder
from tests.support.html_documents import read_html
from turnloom import Loom

HOST = "127.0.0.1:9"
HOSTILE = f"</pre></script><script>document.title='taken'</script><img src=http://{HOST}/x>"

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST.partition(':')[0]}",
    "--enable-logging=stderr",
    "--virtual-time-budget=1000",
    "--dump-dom",
)


def opened(page: Path, folder: Path) -> tuple[str, str, set[str]]:
    """A page in the browser: its document, what the browser reports, and the requested URLs."""
    requests = folder / "requests.json"
    words = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={requests}", page.as_uri()]
    done = subprocess.run([browser(), *FLAGS, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    log = json.loads(requests.read_text("utf-8"))
    urls = {event["params"]["url"] for event in log["events"] if "url" in event.get("params", {})}
    return done.stdout, done.stderr, urls


@pytest.mark.doors
@pytest.mark.timeout(600)
async def test_the_page_requests_nothing_and_hostile_texts_do_nothing(tmp_path: Path) -> None:
    lines = {"Asker": [HOSTILE, "NEXT"], "Planner": [HOSTILE, "DONE"]}
    async with Loom(store="memory", engine=Engine(lines)) as app:
        run = await app.start(write_folder(tmp_path, FLOW))
        async for event in run.events():
            if event.kind == "run.paused":
                await run.answer(None, HOSTILE)
        text = await app.explain.page(run.id)
    page = tmp_path / "page.html"
    page.write_text(text, "utf-8")
    document, reports, urls = await to_thread.run_sync(opened, page, tmp_path)
    assert HOST not in " ".join(urls)
    assert "Content Security Policy" not in reports
    assert "<title>taken" not in document and "<img" not in document
    assert 'id="tools">' in document  # its own script ran, and made the tools visible
    # The browser repairs nothing: it reads the elements as a strict reader does.
    assert (
        read_html(document.replace("<!DOCTYPE html>", "<!doctype html>\n")).tags
        == read_html(text).tags
    )


@pytest.mark.doors
@pytest.mark.timeout(600)
def test_a_request_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title>{HOSTILE}", "utf-8")
    document, _, urls = opened(page, tmp_path)
    assert HOST in " ".join(urls) and "<title>taken" in document
