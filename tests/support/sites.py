"""The web UI for tests: built once, served by a process of its own, seen by a real browser."""

import fcntl
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

from tests.support.browsers import browser

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src/turnloom/server/static"
SOURCES = ("src", "public", "index.html", "package-lock.json", "vite.config.ts")
AT = re.compile(r"serves at (http://\S+)")

ARGUMENTS = (
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# What a page may take on a busy machine, in milliseconds.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


def make(verb: str) -> None:
    """Run a verb of the Makefile, one process at a time."""
    with (Path(tempfile.gettempdir()) / "turnloom-web.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if verb == "web" and _is_built():
            return
        done = subprocess.run(["make", verb], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _is_built() -> bool:
    page = STATIC / "index.html"
    if not page.is_file():
        return False
    built = page.stat().st_mtime
    sources = [ROOT / "web" / each for each in SOURCES]
    files = [f for each in sources for f in (each.rglob("*") if each.is_dir() else [each])]
    return all(each.stat().st_mtime <= built for each in files if each.name != "schema.d.ts")


@dataclass(frozen=True)
class Site:
    """A server with the web UI, and the folder that it runs in."""

    url: str
    folder: Path
    process: "subprocess.Popen[str]" = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of programs that use the store of the server."""
        return {**os.environ, "TURNLOOM_STORE": str(self.folder / ".turnloom/turnloom.db")}

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def turnloom(self, *arguments: str) -> str:
        """The output of a command beside the server, on its store."""
        command = [sys.executable, "-m", "turnloom", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def serving(folder: Path, *arguments: str, port: int = 0) -> Generator[Site]:
    """Serve what is in a folder, at a free port unless one is named."""
    make("web")
    command = [sys.executable, "-u", "-m", "turnloom", "serve", "--port", str(port), *arguments]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Site(_address(process), folder, process)
    finally:
        process.terminate()
        process.communicate()  # without a time limit: that would sleep on Playwright's loop


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if found := AT.search(line):
            return found[1]
    raise RuntimeError("The server did not start:\n" + "".join(said))


@contextmanager
def browsing(playwright: Playwright) -> Generator[Browser]:
    """The system's Chromium."""
    chromium = playwright.chromium.launch(executable_path=browser(), args=[*ARGUMENTS])
    try:
        yield chromium
    finally:
        chromium.close()


@dataclass
class Visit:
    """A page of a site; `complaints` are what its console and its policy complained about."""

    site: Site
    page: Page
    context: BrowserContext
    complaints: list[str] = field(default_factory=list[str])

    def open(self, path: str) -> Page:
        """Open a path of the site."""
        self.page.goto(self.site.url + path)
        return self.page

    def violations(self) -> list[str]:
        """What axe finds wrong with the page as it is, by WCAG 2.2 AA."""
        script = ROOT / "web/node_modules/axe-core/axe.min.js"
        # Not as a script of the page, which its policy would rightly refuse.
        self.page.evaluate(script.read_text())
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        found: dict[str, Any] = self.page.evaluate(
            "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", tags
        )
        return [
            f"{each['id']}: {node['target']} {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]


@contextmanager
def visiting(
    chromium: Browser, site: Site, *, theme: str = "light", size: Sequence[int] = (1360, 820)
) -> Generator[Visit]:
    """A fresh visitor of a site."""
    context = chromium.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    visit = Visit(site, page, context)
    page.on(
        "console",
        lambda said: visit.complaints.append(said.text) if said.type == "error" else None,
    )
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    try:
        yield visit
    finally:
        page.unroute_all(behavior="ignoreErrors")  # what is under way has no page to answer
        context.close()
