"""What does not happen in production, where environment variables are absent."""

from collections.abc import Iterator, Mapping

from turnloom.conversation.logic.reach import reached
from turnloom.conversation.spec import Conversation, Rule
from turnloom.errors import Diagnostic
from turnloom.kernel.documents import Folder
from turnloom.kernel.models import Report
from turnloom.variables.spec import BAKED_IN, FromEnvironment, Variables


def check_production(folder: Folder, conversation: Conversation) -> list[Diagnostic]:
    """A warning per rule that never fires in production, and per agent that nobody reaches then."""
    report = Report(folder.name)
    absent = frozenset(_absent(conversation.variables))
    left: dict[str, tuple[Rule, ...]] = {}
    for source, rules in conversation.rules.items():
        left[source] = tuple(rule for rule in rules if not _missed(rule, absent))
        for rule in rules:
            if missed := _missed(rule, absent):
                _warn_rule(report, folder, source, rule, missed)
    _warn_agents(report, folder, conversation, left)
    return sorted(report.problems)


def _absent(variables: Variables) -> Iterator[str]:
    """The names that have no value in production."""
    declared = variables.definitions
    yield from (name for name in BAKED_IN if name not in declared)
    for name, definition in declared.items():
        if isinstance(definition.source, FromEnvironment):
            yield name


def _missed(rule: Rule, absent: frozenset[str]) -> list[str]:
    """The names in the condition of a rule that have no value."""
    terms = rule.condition.terms if rule.condition else ()
    return list(dict.fromkeys(term.name for term in terms if term.name in absent))


def _warn_rule(report: Report, folder: Folder, source: str, rule: Rule, missed: list[str]) -> None:
    document = folder.documents["handoffs"]
    names = " and ".join(map(repr, missed))
    verb = "is" if len(missed) == 1 else "are"
    report.warn(
        document,
        (*report.part(document, "handoff_rules").path, rule.number - 1, "condition"),
        "W070",
        f"Rule {rule.number}, from {source!r} to {rule.target!r}, never fires in production: "
        f"{names} {verb} read from the environment, and absent there.",
        "Decide by a derived variable, or add a rule that does without.",
    )


def _warn_agents(
    report: Report,
    folder: Folder,
    conversation: Conversation,
    left: Mapping[str, tuple[Rule, ...]],
) -> None:
    """Note whom the rules that are left no longer lead to."""
    agents, setup = conversation.agents, conversation.orchestrator
    lost = reached(agents, setup, conversation.rules) - reached(agents, setup, left)
    document = folder.documents["agents"]
    declared = report.named(document, report.part(document, "agents"), "Agent").entries
    for name in sorted(lost & agents.keys()):
        report.warn(
            document,
            declared[name].path,
            "W030",
            f"In production nothing ever hands over to agent {name!r}.",
            "Add a handoff to it that needs no environment variable.",
        )
