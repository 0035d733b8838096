"""What becomes of a workflow whose context variables do not pass their check and are set aside."""

from collections.abc import Iterable

from weft.conversation.spec import Conversation
from weft.errors import Diagnostic
from weft.variables.events import ContextSuppressed
from weft.variables.spec import BAKED_IN

# The part without which a workflow can begin.
OPTIONAL = "context_variables"

_FILES = tuple(f"/{OPTIONAL}{suffix}" for suffix in (".json", ".yaml", ".yml"))


def is_about(problem: Diagnostic) -> bool:
    """Whether a problem is one of the context variables."""
    return problem.file.endswith(_FILES)


def is_invalid(problems: Iterable[Diagnostic]) -> bool:
    """Whether the context variables are among what is wrong."""
    return any(each.severity == "error" and is_about(each) for each in problems)


def suppressed(conversation: Conversation) -> tuple[ContextSuppressed, ...]:
    """The variables that conditions name and that nobody has, with the reason."""
    rules = [rule for found in conversation.rules.values() for rule in found]
    terms = [term for rule in rules if rule.condition for term in rule.condition.terms]
    names = tuple(dict.fromkeys(term.name for term in terms if term.name not in BAKED_IN))
    reason = "the context variables do not pass their check, and strict is off"
    return (ContextSuppressed(names, reason),) if names else ()
