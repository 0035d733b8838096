"""The names, positions and problems that the checks of a workflow share."""

from collections.abc import Collection, Mapping

from turnloom.agents.spec import TERMINATE, USER
from turnloom.conversation.spec import FOREIGN_START, START_WORDS, Orchestrator, in_our_words
from turnloom.kernel.documents import DeclarationFile, Folder, Path
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.kernel.values import as_object, nearest
from turnloom.variables.logic.checking import CheckedVariables
from turnloom.variables.spec import VariableDefinition, Variables

# The diagnostic of a file in an older shape; the checks read it as a migration will write it.
OLDER = "W014"


class Scope:
    """The names that a workflow declares, and the report that its checks share."""

    def __init__(self, report: Report, folder: Folder, broken: frozenset[str]) -> None:
        self.report = report
        self.folder = folder
        self.broken = broken
        self.agent_names: set[str] = set()
        self.agents_known = False
        self.code_answers = False
        self.variables_known = False
        self.places: dict[str, tuple[DeclarationFile, Path]] = {}
        self.variable_names: frozenset[str] = frozenset()
        self.variables = Variables()
        self.declared: Mapping[str, DocumentEntry] = {}
        self.views: Mapping[str, DocumentEntry] = {}
        self.asking: list[tuple[DeclarationFile, Path, str]] = []

    def is_sound(self, parts: Collection[str], besides: Collection[str] = ()) -> bool:
        """Whether these parts could be read and have no errors so far, besides some codes, and
        besides a shape that a migration rewrites."""
        files = {self.document(part).file for part in parts}
        return (
            self.agents_known
            and self.broken.isdisjoint(parts)
            and not any(
                each.severity == "error"
                and each.file in files
                and each.code not in (OLDER, *besides)
                for each in self.report.problems
            )
        )

    @property
    def others_write(self) -> bool:
        """Whether code may set derived variables at any time: tools, hooks, or functions that
        answer for agents."""
        declared = as_object(self.document("tools").value) or {}
        hooks = self.report.part(self.document("hooks"), "hooks").value
        played = (as_object(self.document("script").value) or {}).get("functions")
        written = declared.get("tools") or declared.get("lifecycle_tools") or hooks or played
        return self.code_answers or bool(written)

    def document(self, part: str) -> DeclarationFile:
        """The document of a part, or an empty one."""
        empty = DeclarationFile(f"{self.folder.name}/{part}.yaml", {}, "")
        return self.folder.documents.get(part, empty)

    def orchestrator(self) -> Orchestrator | None:
        """The orchestrator, if it can be read."""
        document = self.document("orchestrator")
        entry = self.report.part(document, "orchestrator")
        own = self.report.foreign(document, entry, FOREIGN_START)
        if (value := as_object(own.value)) is not None:
            own = DocumentEntry(own.path, in_our_words(value, START_WORDS))
        return self.report.model(document, own, Orchestrator)

    def know(self, checked: CheckedVariables) -> None:
        """Register the variables, and the names of invalid ones too."""
        self.variables = checked.variables
        self.declared, self.views = checked.declared, checked.views
        self.variable_names = checked.names
        self.variables_known = checked.complete and "context_variables" not in self.broken

    def definition(self, name: str) -> VariableDefinition | None:
        """The definition of a variable, if it is valid."""
        return self.variables.definitions.get(name)

    def check_agent(self, document: DeclarationFile, path: Path, name: str, role: str) -> bool:
        """Whether an agent exists; reported if not."""
        if name in self.agent_names or not self.agents_known:
            return True
        known = sorted(self.agent_names)
        hint = nearest(name, known)
        remedy = f"Did you mean {hint!r}?" if hint else f"Declared: {', '.join(known)}."
        message = f"Agent {name!r}, which {role}, is not declared."
        self.report.add(document, path, "W020", message, remedy=remedy)
        return False

    def check_party(self, document: DeclarationFile, path: Path, name: str, role: str) -> bool:
        """Whether a name is an agent, the user or the end; reported if not."""
        return name in (USER, TERMINATE) or self.check_agent(document, path, name, role)
