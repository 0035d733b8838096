"""What becomes of a workflow whose context variables do not pass their check and are set aside."""

from collections.abc import Iterable, Iterator

from turnloom.conversation.logic.contexts import read_in
from turnloom.conversation.logic.transfers import names_in
from turnloom.conversation.spec import Conversation
from turnloom.errors import Diagnostic
from turnloom.variables.events import ContextSuppressed
from turnloom.variables.spec import BAKED_IN, BASE

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
    """The variables that conditions and sources name and that nobody has, with the reason."""
    named = dict.fromkeys(_names(conversation))
    names = tuple(name for name in named if name not in BAKED_IN and name not in BASE)
    reason = "the context variables do not pass their check, and strict is off"
    return (ContextSuppressed(names, reason),) if names else ()


def _names(conversation: Conversation) -> Iterator[str]:
    """The variables that handoffs and hooks depend on, and that sources read."""
    rules = [rule for found in conversation.rules.values() for rule in found]
    hooks = [hook for found in conversation.hooks.values() for hook in found]
    for condition in (*(rule.condition for rule in rules), *(hook.when for hook in hooks)):
        yield from (term.name for term in condition.terms) if condition else ()
    yield from (name for rule in rules if rule.llm for name in names_in(rule.said))
    choices = [choice for agent in conversation.agents.values() for choice in agent.context]
    yield from (name for choice in choices for _, name in read_in(choice))
