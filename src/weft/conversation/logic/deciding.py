"""A conversation as far as it decides who is next and which hooks run."""

from weft.agents.spec import Script, Toolkit
from weft.conversation.logic.checking import definition_digest
from weft.conversation.logic.rosters import roster
from weft.conversation.logic.rules import check_rules
from weft.conversation.logic.scope import Scope
from weft.conversation.logic.tooling import check_hooks, read_tooling
from weft.conversation.spec import Conversation, Orchestrator
from weft.kernel.documents import Folder
from weft.kernel.models import Report
from weft.variables.logic.derivation import Triggers
from weft.variables.spec import Variables


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
