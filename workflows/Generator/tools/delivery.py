"""Show the finished workflow, and write it once the person accepts it."""

import os
import re
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio import to_thread

from turnloom import Context, DefinitionError, use_ui_tool
from turnloom.wiring import Folders

# Never a path.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


async def project_overview(summary: str, diagram: str, context_variables: Context) -> Any:
    """Show the workflow to the person; write it down once it is accepted."""
    name = context_variables["action_plan"]["workflow_name"]
    root = Path(context_variables["output_folder"])
    place = f"It will be written to {root / name}, or to a numbered folder if that exists."
    prompt = f"{summary}\n\n{diagram}\n\n{place} Do you accept it?"
    shown = {"summary": summary, "diagram": diagram, "folder": str(root / name)}
    answer = await use_ui_tool("project_overview", {"prompt": prompt, **shown})
    context_variables["plan_acceptance"] = answer["plan_acceptance"]
    context_variables["adjustments"] = answer.get("adjustments") or ""
    if answer["plan_acceptance"] == "accepted":
        files = context_variables["drafted_files"]
        files["README.md"] = _readme(name, summary, diagram)
        production = context_variables["production"]
        folder = await to_thread.run_sync(_place, files, root, name, production)
        context_variables["generated_folder"] = str(folder)
    return answer


def _readme(name: str, summary: str, diagram: str) -> str:
    parts = [
        f"# {name}",
        summary,
        f"```mermaid\n{diagram.strip()}\n```",
        "`script.yaml` is a rehearsal: what the agents say as long as no engine is chosen, and "
        "what the user answers.",
        "A tool in `tools/` that asks nobody gives a sample until you write its work.",
    ]
    return "\n\n".join(parts) + "\n"


def _place(files: Mapping[str, str], root: Path, name: str, production: bool) -> Path:
    """Write a workflow to a new folder, complete or not at all.

    Raises:
        ValueError: the name is invalid.
        DefinitionError: the workflow does not pass its check; nothing was written.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid workflow name.")
    root.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".draft-", dir=root) as temporary:
        folder = _write(files, Path(temporary, name))
        loaded, problems = Folders(production=production).examine(str(folder))
        if loaded is None:
            raise DefinitionError(name, problems)
        for number in count(1):
            target = root / (name if number == 1 else f"{name}{number}")
            if _holds(target, files):
                return target
            if not os.path.lexists(target):
                return folder.rename(target)
    raise AssertionError("counting has no end")


def _write(files: Mapping[str, str], folder: Path) -> Path:
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def _holds(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether a folder already has these files: a repeated call finds its own work."""
    return all(
        (folder / file).is_file() and (folder / file).read_text("utf-8", "replace") == text
        for file, text in files.items()
    )
