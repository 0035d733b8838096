"""Check and read handoff rules and their conditions."""

from collections.abc import Mapping, Sequence
from typing import Any

from turnloom.agents.spec import TERMINATE, USER
from turnloom.conversation.logic.routing import names_in
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.spec import FOREIGN_RULE, Handoff, HandoffRule, party, usual
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.models import DocumentEntry
from turnloom.kernel.values import as_array, as_object, nearest, preview
from turnloom.variables.logic.conditions import Condition, Term, parse_condition
from turnloom.variables.logic.suggestions import suggest, variables_in
from turnloom.variables.logic.types import misfit, same
from turnloom.variables.spec import (
    BAKED_IN,
    BASE,
    DatabaseSource,
    Derived,
    FileSource,
    FromEnvironment,
    Static,
    VariableDefinition,
)

_TARGETS = {USER: "RevertToUserTarget", TERMINATE: "TerminateTarget"}


def check_rules(scope: Scope, document: DeclarationFile) -> dict[str, tuple[HandoffRule, ...]]:
    """The rules of a workflow by source: conditions in declared order, then after_work."""
    entry = scope.report.part(document, "handoff_rules")
    if entry.value is None or entry.value == {}:
        return {}
    items = as_array(entry.value)
    if items is None:
        scope.report.add(
            document,
            entry.path,
            "W012",
            "Handoffs must be a list under `handoff_rules`.",
            remedy="Write one entry per rule, each with `source_agent` and `target_agent`.",
        )
        return {}
    found: dict[str, list[HandoffRule]] = {}
    for index, value in enumerate(items):
        path = (*entry.path, index)
        own = scope.report.foreign(document, DocumentEntry(path, value), FOREIGN_RULE)
        handoff = scope.report.model(document, own, Handoff)
        if handoff is not None:
            handoff = _usual(scope, handoff)
            rule = _rule(scope, document, path, handoff, number=index + 1)
            found.setdefault(handoff.source_agent, []).append(rule)
        else:
            _check_unread(scope, document, path, as_object(value) or {})
    ordered = {source: tuple(sorted(rules, key=_order)) for source, rules in found.items()}
    for rules in ordered.values():
        for place, rule in enumerate(rules):
            _check_repeats(
                scope, document, (*entry.path, rule.number - 1), rules[:place], rule=rule
            )
    return ordered


def _order(rule: HandoffRule) -> tuple[int, int]:
    """Conditions, the model's choice, after_work with a condition, then without; as declared."""
    if rule.kind == "condition":
        return int(rule.llm), rule.number
    return (2 if rule.condition else 3), rule.number


def _usual(scope: Scope, handoff: Handoff) -> Handoff:
    """A handoff with the declared names of agents, and a condition in words as `string_llm`."""
    agents = scope.agent_names
    update: dict[str, str] = {
        "source_agent": party(handoff.source_agent, agents),
        "target_agent": party(handoff.target_agent, agents),
    }
    untyped = handoff.condition_type is None and handoff.handoff_type == "condition"
    if untyped and _is_in_words(scope, handoff.condition or ""):
        update["condition_type"] = "string_llm"
    return handoff.model_copy(update=update)


def _is_in_words(scope: Scope, text: str) -> bool:
    """Whether a condition is for a model: it names no variable."""
    if not text.strip() or "${" in text:
        return False
    try:
        return not parse_condition(text)
    except ValueError:
        names = variables_in(text)
        return not names or (scope.variables_known and scope.variable_names.isdisjoint(names))


def _rule(
    scope: Scope, document: DeclarationFile, path: Path, handoff: Handoff, number: int
) -> HandoffRule:
    if handoff.source_agent != USER:
        source = (*path, "source_agent")
        scope.check_agent(document, source, handoff.source_agent, "has a handoff")
    target = (*path, "target_agent")
    scope.check_party(document, target, handoff.target_agent, "is the target of a handoff")
    _check_target_word(scope, document, path, handoff)
    llm = handoff.condition_type == "string_llm"
    _check_moment(scope, document, path, handoff)
    if llm:
        _check_words(scope, document, path, handoff)
    condition = None if llm else _condition(scope, document, path, handoff)
    pre = handoff.condition_scope == "pre" and not llm
    said = handoff.condition or ""
    return HandoffRule(
        number,
        handoff.target_agent,
        handoff.handoff_type,
        condition,
        said=said,
        llm=llm,
        pre=pre and handoff.handoff_type == "condition",
        description=handoff.description or "",
    )


def _check_unread(
    scope: Scope, document: DeclarationFile, path: Path, value: Mapping[str, Any]
) -> None:
    """Check the names and the condition of a rule that cannot be read as a whole."""
    parties = (("source_agent", "has a handoff"), ("target_agent", "is the target of a handoff"))
    for key, role in parties:
        if isinstance(name := value.get(key), str):
            scope.check_party(document, (*path, key), party(name, scope.agent_names), role)
    said, judged = value.get("condition"), usual(value.get("condition_type"))
    text = said if isinstance(said, str) else ""
    if text.strip() and judged != "string_llm" and not _is_in_words(scope, text):
        check_condition(scope, document, (*path, "condition"), text)


def _check_moment(scope: Scope, document: DeclarationFile, path: Path, handoff: Handoff) -> None:
    """Report settings that exclude each other: when and by whom a rule is judged."""
    llm, after = handoff.condition_type == "string_llm", handoff.handoff_type == "after_work"
    where = (*path, "condition_scope")
    if llm and after:
        message = "A `string_llm` handoff is chosen during the reply, not after it."
        remedy = "Use `handoff_type: condition`."
        scope.report.add(document, (*path, "condition_type"), "W028", message, remedy=remedy)
    elif handoff.condition_scope is None:
        return
    elif llm or handoff.condition is None:
        what = "a `string_llm` handoff, which is chosen during" if llm else "a handoff after"
        message = f"`condition_scope: pre` has no effect on {what} the reply."
        scope.report.warn(document, where, "W015", message, remedy="Remove it.")
    elif after:
        message = "`condition_scope: pre` is for conditions judged before an agent replies."
        remedy = "Drop it, or make this a `condition` handoff of an agent."
        scope.report.add(document, where, "W028", message, remedy=remedy)


def _check_words(scope: Scope, document: DeclarationFile, path: Path, handoff: Handoff) -> None:
    """Check a condition that a model judges: it is not empty, and its variables exist."""
    where = (*path, "condition")
    if not (handoff.condition or "").strip():
        message = "A `string_llm` handoff has no condition."
        scope.report.add(document, path, "W028", message, remedy="Write in words when to hand off.")
    for name in names_in(handoff.condition or ""):
        definition = scope.definition(name)
        known = name in scope.variable_names or name in BAKED_IN or name in BASE
        if scope.variables_known and not known:
            _unknown_variable(scope, document, where, name)
        elif definition is not None and definition.secret:
            message = f"Variable {name!r} is secret; a condition would reveal it."
            scope.report.add(document, where, "W023", message, remedy="Use another variable.")


def _check_target_word(
    scope: Scope, document: DeclarationFile, path: Path, handoff: Handoff
) -> None:
    expected = _TARGETS.get(handoff.target_agent, "AgentTarget")
    if handoff.transition_target not in (None, expected):
        scope.report.add(
            document,
            (*path, "transition_target"),
            "W028",
            f"{handoff.transition_target} does not go with target {handoff.target_agent!r}.",
            remedy=f"Write {expected}, or leave it out.",
        )


def _condition(
    scope: Scope, document: DeclarationFile, path: Path, handoff: Handoff
) -> Condition | None:
    where = (*path, "condition")
    if handoff.condition is None:
        if handoff.handoff_type == "condition":
            scope.report.add(
                document,
                path,
                "W028",
                "A `condition` handoff has no condition.",
                remedy="Add one, or make it `after_work`.",
            )
        elif handoff.condition_type is not None:
            scope.report.warn(
                document,
                (*path, "condition_type"),
                "W015",
                "`condition_type` has no effect without a condition.",
                remedy="Drop it, or add a condition.",
            )
        return None
    remedy = "If a model should judge it, set `condition_type: string_llm`."
    return check_condition(scope, document, where, handoff.condition, remedy=remedy)


def check_condition(
    scope: Scope, document: DeclarationFile, where: Path, text: str, remedy: str = ""
) -> Condition | None:
    """Parse a condition, and check its variables."""
    try:
        condition = parse_condition(text)
    except ValueError as error:
        message, instead = str(error), suggest(text, scope.variables.definitions)
        if instead:
            message, remedy = f"Condition {text!r} must be one equality or two with AND.", instead
        scope.report.add(document, where, "W022", message, remedy=remedy)
        for name in variables_in(text) if scope.variables_known else ():
            if name in BASE or not (name in scope.variable_names or name in BAKED_IN):
                _unknown_variable(scope, document, where, name)
        return None
    for term in condition.terms:
        _check_term(scope, document, where, term)
    return condition


def _check_term(scope: Scope, document: DeclarationFile, path: Path, term: Term) -> None:
    definition = scope.definition(term.name)
    if definition is None:
        known = term.name in scope.variable_names or term.name in BAKED_IN
        if term.name in BASE or (scope.variables_known and not known):
            _unknown_variable(scope, document, path, term.name)
        return
    if problem := _unfit(definition):
        scope.report.add(document, path, "W023", *problem)
    elif problem := misfit(definition, term.value):
        message, remedy = f"This can never hold: {problem}.", "Compare with a value it can have."
        scope.report.add(document, path, "W024", message, remedy=remedy)
    elif isinstance(definition.source, Derived):
        _check_can_hold(scope, document, path, term, source=definition.source)


def _unfit(definition: VariableDefinition) -> tuple[str, str] | None:
    """Why a variable cannot decide a route, and the remedy."""
    name, source = definition.name, definition.source
    if isinstance(source, Static):
        message = f"Variable {name!r} is static; conditions use derived and environment variables."
        return message, "A constant cannot decide anything: use a derived variable."
    if isinstance(source, FileSource):
        message = f"Variable {name!r} comes from a file; conditions use derived and environment "
        return f"{message}variables.", "A file cannot decide anything: use a derived variable."
    if isinstance(source, DatabaseSource) and not definition.gate:
        message = f"Variable {name!r} comes from a database, but is not a gate."
        return message, "Set `gate: true` on a boolean or an enum, or use a derived variable."
    if definition.secret:
        return f"Variable {name!r} is secret; a route would reveal it.", "Use another variable."
    return None


def _check_can_hold(
    scope: Scope, document: DeclarationFile, path: Path, term: Term, source: Derived
) -> None:
    open_ended = scope.others_write or any(each.values is None for each in source.triggers)
    reachable = [source.default, *(v for t in source.triggers for v in t.values or ())]
    if not open_ended and not any(same(value, term.value) for value in reachable):
        scope.report.warn(
            document,
            path,
            "W032",
            f"No trigger ever sets {term.name!r} to {preview(term.value)}.",
            remedy="Add a trigger with that value, or drop the rule.",
        )


def _unknown_variable(scope: Scope, document: DeclarationFile, path: Path, name: str) -> None:
    if name in BASE:
        scope.report.add(
            document,
            path,
            "W023",
            f"{name!r} is an id of the run; conditions cannot use it.",
            remedy="Use a derived or environment variable.",
        )
        return
    known = sorted(
        name
        for name, definition in scope.variables.definitions.items()
        if isinstance(definition.source, Derived | FromEnvironment)
    )
    hint = nearest(name, known)
    remedy = f"Did you mean {hint!r}?" if hint else "Add it under `definitions`."
    scope.report.add(
        document,
        path,
        "W021",
        f"Condition uses variable {name!r}, which is not declared.",
        remedy=remedy,
    )


def _check_repeats(
    scope: Scope,
    document: DeclarationFile,
    path: Path,
    earlier: Sequence[HandoffRule],
    rule: HandoffRule,
) -> None:
    """Report a rule that cannot fire because an earlier one always does."""
    for other in earlier:
        if other.pre != rule.pre:
            continue  # judged at other moments
        if other.kind == rule.kind == "after_work" and not (other.said or rule.said):
            scope.report.add(
                document,
                path,
                "W027",
                f"Rule {rule.number} is a second unconditional after_work; rule {other.number} "
                "always comes first.",
                remedy="Keep one.",
            )
        elif other.llm and rule.llm and (other.said, other.target) == (rule.said, rule.target):
            message = f"Rule {rule.number} is the same as rule {other.number}."
            scope.report.warn(document, path, "W031", message, remedy="Remove one of them.")
        elif other.condition and rule.condition and _covers(other.condition, rule.condition):
            scope.report.warn(
                document,
                path,
                "W031",
                f"Rule {rule.number} never fires: where its condition holds, rule {other.number} "
                "comes first.",
                remedy="Remove it or change its condition.",
            )


def _covers(first: Condition, second: Condition) -> bool:
    """Whether the first condition holds wherever the second does."""
    return all(
        any(term.name == name and same(term.value, value) for term in second.terms)
        for name, value in first.terms
    )
