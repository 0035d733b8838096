"""A conversation as far as it decides who is next and which hooks run."""

from turnloom.agents.spec import Script, Toolkit
from turnloom.conversation.logic.checking import definition_digest
from turnloom.conversation.logic.rosters import roster
from turnloom.conversation.logic.rules import check_rules
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.logic.tooling import check_hooks, read_tooling
from turnloom.conversation.spec import Conversation, Orchestrator
from turnloom.kernel.documents import Folder
from turnloom.kernel.models import Report
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables


def deciding(folder: Folder, broken: frozenset[str]) -> Conversation | None:
    """The conversation with its pattern, rules and hooks, and without variables and tools.

    A run may be pinned to declarations that do not pass the check of this process: the kind of a
    trigger, say, may be registered in another one. What decides needs none of that.
    """
    scope = Scope(Report(folder.name), folder, broken)
    document = scope.document("orchestrator")
    declared = scope.report.part(document, "orchestrator")
    orchestrator = scope.report.model(document, declared, Orchestrator)
    if orchestrator is None:
        return None
    return Conversation(
        orchestrator.workflow_name or folder.name,
        orchestrator.version,
        definition_digest(folder.documents),
        orchestrator,
        roster(folder, broken).agents,
        Variables(),
        Triggers({}),
        check_rules(scope, scope.document("handoffs")),
        Script(),
        Toolkit(),
        {},
        check_hooks(scope, read_tooling(scope)),
    )
