"""Code on a page is code in a file, and that file works."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.docs.console import run, steps
from tests.docs.markdown import DOCS, PAGES, ROOT, Fence, fences, section
from tests.support.warm import Done, Warm

SNIPPETS = DOCS / "snippets"
MISTAKEN = "Mistakes"
CODE = ("python", "yaml", "toml", "json")
# Files that no page shows because a page names their folder.
_PARTS = ("agents.yaml", "handoffs.yaml", "orchestrator.yaml", "script.yaml")
UNSHOWN = {
    *(f"Advice/{file}" for file in ("context_variables.yaml", "orchestrator.yaml", "script.yaml")),
    *(f"Booking/{file}" for file in (*_PARTS, "context_variables.yaml")),
    *("Haggle/agents.yaml", "Haggle/handoffs.yaml"),
    *(f"Clerks/{file}" for file in ("agents.yaml", "handoffs.yaml", "script.yaml")),
    *(f"Clerks/{file}" for file in ("clerks.py", "context_variables.yaml")),
    "Desk/orchestrator.yaml",
    *("Handbook/leave.md", "Handbook/travel.txt"),
    *(f"Helpline/{file}" for file in _PARTS if file != "handoffs.yaml"),
    *(f"Helpline/{file}" for file in ("context_variables.yaml", "desk.py")),
    *(f"Invoices/{file}" for file in _PARTS if file != "agents.yaml"),
    *(f"Leave/{file}" for file in (*_PARTS, "structured_outputs.yaml")),
    *("Mistakes/agents.yaml", "Mistakes/handoffs.yaml"),
    *(f"Nightly/{file}" for file in (*_PARTS, "context_variables.yaml")),
    *("Orders/agents.yaml", "Orders/orchestrator.yaml"),
    *("Sales/closer.py", "Sales/orchestrator.yaml"),
    *(f"Warranty/{file}" for file in (*_PARTS, "staff.py")),
    *(f"Support/{file}" for file in ("agents.yaml", "desk.py", "handoffs.yaml")),
}


def code_fences() -> list[tuple[Path, Fence]]:
    return [(page, fence) for page in PAGES for fence in fences(page) if fence.language in CODE]


def is_part(text: str, whole: str) -> bool:
    """Whether whole lines of a file, moved to the left perhaps, are this text."""
    lines = dedent(text)
    depths = {len(line) - len(line.lstrip(" ")) for line in whole.splitlines() if line.strip()}
    return any(f"\n{indent(lines, ' ' * depth)}" in f"\n{whole}" for depth in depths)


@pytest.mark.parametrize(
    ("page", "fence"),
    code_fences(),
    ids=[f"{page.stem}:{fence.line}" for page, fence in code_fences()],
)
def test_code_on_a_page_stands_in_a_file(page: Path, fence: Fence) -> None:
    assert fence.file, f"{page.name}:{fence.line}: name the file in a comment before the block."
    whole = (ROOT / fence.file).read_text("utf-8")
    assert is_part(fence.text, whole), f"{page.name}:{fence.line} is not what {fence.file} says."


def test_a_part_is_whole_lines() -> None:
    whole = "a:\n  b: 1\n  c: 2\n"
    assert is_part("b: 1\nc: 2\n", whole)
    assert is_part(whole, whole)
    assert not is_part("b: 2\n", whole)
    assert not is_part(": 1\n", whole)


def test_every_snippet_is_on_a_page() -> None:
    shown = {fence.file for _, fence in code_fences()}
    tracked = [
        path for path in SNIPPETS.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    names = {path.relative_to(SNIPPETS).as_posix() for path in tracked}
    assert {name for name in names if f"docs/snippets/{name}" not in shown} == UNSHOWN


def test_every_script_is_run_by_a_page() -> None:
    commands = {
        command
        for page in PAGES
        for fence in fences(page, "console")
        for command, _ in steps(fence)
    }
    for script in SNIPPETS.glob("*.py"):
        assert f"python docs/snippets/{script.name}" in commands


def test_every_workflow_passes_its_check(warm: Warm, tmp_path: Path) -> None:
    files = [*SNIPPETS.glob("*/agents.yaml"), *(ROOT / "examples").glob("*/agents.yaml")]
    folders = {file.parent.name: str(file.parent) for file in files}
    mistaken = folders.pop(MISTAKEN)
    assert warm.run(["check", *folders.values()], tmp_path, {}) == Done(0, "", "")
    assert warm.run(["check", mistaken], tmp_path, {}).code == 2


@pytest.mark.timeout(240)
def test_the_tests_on_the_testing_page_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(SNIPPETS / "testing")],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_converses_and_explains(tmp_path: Path, warm: Warm) -> None:
    printed = run(f"python {ROOT / 'examples' / 'interview.py'}", tmp_path, warm)
    conversation, _, explanation = printed.partition("\n\n")
    assert conversation.startswith("InterviewAgent: Hello!")
    assert conversation.endswith("robin: Looks good to me.\n  (plan_accepted is now True)")
    assert explanation.startswith("Turn 6 of PlanArchitect (done)")
    assert "digests verified" in explanation.splitlines()[0]
    assert "InterviewAgent: NEXT" in explanation


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        pictures = re.findall(r'^ *<(?:img|source) .*?src(?:set)?="([^"]+)"', text, re.MULTILINE)
        for target in [*re.findall(r"\]\(([^)\s]+)\)", text), *pictures]:
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            found = page.parent / file if file else page
            assert found.exists(), f"{page.name} links to {target}, which is not there."
            assert not anchor or anchor in anchors(found), (
                f"{page.name}: {target} has no such part."
            )


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_lists_every_page() -> None:
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (DOCS / "index.md").read_text("utf-8")))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


def test_verbs_of_make_exist() -> None:
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"\bmake (\w+) +#", page.read_text("utf-8"))) <= verbs
    assert "make run " in section(ROOT / "README.md", "## Start")
    assert "make test " in section(ROOT / "README.md", "## Start")
