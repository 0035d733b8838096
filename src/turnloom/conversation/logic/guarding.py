"""Guards of a conversation: whether what they name is there."""

from collections.abc import Iterator, Mapping

from turnloom.agents.spec import Agent
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.spec import Orchestrator
from turnloom.guards.logic import checking
from turnloom.guards.spec import Guards, Selection
from turnloom.kernel.documents import Document, Folder, Path
from turnloom.kernel.models import Report
from turnloom.kernel.values import nearest
from turnloom.variables.spec import BAKED_IN, BASE


def check_guards(scope: Scope, orchestrator: Orchestrator, agents: Mapping[str, Agent]) -> None:
    """Note what is wrong with guards: what they name and nobody declares, and what cannot be."""
    document = scope.document("orchestrator")
    path = (*scope.report.part(document, "orchestrator").path, "guards")
    models = {name: agent.model or orchestrator.model for name, agent in agents.items()}
    checking.check_guards(scope.report, document, path, orchestrator.guards, models)
    _check_escalation(scope, orchestrator, path)
    _check_selection(scope, orchestrator)


def _check_escalation(scope: Scope, orchestrator: Orchestrator, path: Path) -> None:
    detection = orchestrator.guards.loop_detection
    if detection is None or orchestrator.startup_mode != "BackendOnly":
        return
    document = scope.document("orchestrator")
    for place in checking.escalations(detection):
        scope.report.add(
            document,
            (*path, "loop_detection", *place),
            "W033",
            f"BackendOnly runs without people, and `{'.'.join(place)}: escalate` asks them.",
            f"Set `{'.'.join(place)}` to something else, as `stop`.",
        )


def _check_selection(scope: Scope, orchestrator: Orchestrator) -> None:
    selection = orchestrator.guards.selection
    if selection is None:
        return
    document = scope.document("orchestrator")
    root = (*scope.report.part(document, "orchestrator").path, "guards", "selection")
    for number, name in enumerate(selection.candidates):
        where = (*root, "candidates", number)
        scope.check_agent(document, where, name, "is a candidate")
    for path, name in _variables(selection):
        _check_variable(scope, document, (*root, *path), name)


def declared_guards(folder: Folder, broken: frozenset[str]) -> Guards:
    """The guards of a folder, if they are valid, also if it has problems elsewhere."""
    scope = Scope(Report(folder.name), folder, broken)
    document = scope.document("orchestrator")
    entry = scope.report.part(document, "orchestrator")
    orchestrator = scope.report.model(document, entry, Orchestrator)
    return orchestrator.guards if orchestrator else Guards()


def _variables(selection: Selection) -> Iterator[tuple[Path, str]]:
    if selection.about.variable is not None:
        yield ("category", "variable"), selection.about.variable
    if selection.exclude_variable is not None:
        yield ("exclude_variable",), selection.exclude_variable


def _check_variable(scope: Scope, document: Document, path: Path, name: str) -> None:
    known = [*scope.variable_names, *BASE, *BAKED_IN]
    if name in known or not scope.variables_known:
        return
    hint = nearest(name, known)
    remedy = f"Did you mean {hint!r}?" if hint else "Add it under `definitions`."
    message = f"The selection asks for variable {name!r}, which is not declared."
    scope.report.add(document, path, "W021", message, remedy)
