"""What each field does that is declared about the sources of an agent's context."""

from collections.abc import Callable
from typing import Any

from tests.parity.context_effects import CONTEXT
from tests.parity.effects import Effect, Path, data
from tests.parity.runs import Seen

SOURCES: Path = (*CONTEXT, "sources")
FIRST: Path = (*SOURCES, 0)
LONG = "Words and more words, of which there are many. " * 4


def told(seen: Seen) -> str:
    """The context that A was shown at last, or nothing."""
    task = [task for task in seen.tasks if task.agent == "A"][-1]
    texts = [message.text for message in task.transcript if message.text.startswith("Context:")]
    return texts[0].removeprefix("Context:\n") if texts else ""


def shows(text: str) -> Callable[[Seen], bool]:
    """Whether A was shown a text as it is."""
    return lambda seen: text in told(seen)


def asked(name: str) -> Callable[[Seen], list[Any]]:
    """One field of each search."""
    return data("retrieval.searched", name)


def of(*sources: Any, **more: Any) -> dict[Path, Any]:
    """An agent with these sources."""
    return {CONTEXT: {"sources": list(sources), **more}}


def literal(text: str, **share: Any) -> dict[str, Any]:
    return {"literal": text, **share}


def searching(**more: Any) -> dict[str, Any]:
    return {"retrieval": {"collection": "manual", "query": "tea", **more}}


def source(field: str, to: Any, before: str, after: str, base: Any) -> Effect:
    """A field of the first source, by what A is shown."""
    return Effect((*FIRST, field), to, told, before, after, of(base))


def search(field: str, to: Any, before: Any, after: Any, **base: Any) -> Effect:
    """A field of a search, by what was searched for."""
    return Effect(
        (*FIRST, "retrieval", field), to, asked(field), before, after, of(searching(**base))
    )


def window(field: str, to: Any, after: str, **base: Any) -> Effect:
    """A field of a window, by what A is shown."""
    before = "A: Hello.\n\nuser: Yes." if not base else "user: Yes."
    given = of({"history": base})
    return Effect((*FIRST, "history", field), to, told, before, after, given)


def format(field: str, to: Any, before: str, after: str, *sources: Any) -> Effect:
    """A field of a format, by what A is shown."""
    return Effect((*CONTEXT, "format", field), to, told, before, after, of(*sources, format={}))


TEA = "Tea is packed dry."
JARS = "Jars are packed upright."
KIND = "Be kind."
CROWDED = of(literal(LONG, priority=1), literal(KIND), budget={"max_tokens": 9})
SOURCE_EFFECTS: dict[str, Effect] = {
    "ContextChoice.sources": Effect(
        SOURCES, [literal(KIND)], told, "Be brief.", KIND, of(literal("Be brief."))
    ),
    "ContextChoice.budget": Effect(
        (*CONTEXT, "budget"), {"max_tokens": 9}, shows(LONG), True, False, of(literal(LONG))
    ),
    "BudgetChoice.max_tokens": Effect(
        (*CONTEXT, "budget", "max_tokens"),
        9,
        shows(LONG),
        True,
        False,
        of(literal(LONG), budget={"max_tokens": 900}),
    ),
    "ContextChoice.format": Effect(
        (*CONTEXT, "format"),
        {"header": "# {title}\n"},
        told,
        f"Rules:\n{KIND}",
        f"# Rules\n{KIND}",
        of(literal(KIND, title="Rules")),
    ),
    "SourceChoice.state": source("state", "user_id", "beta", "u1", {"state": "tier"}),
    "SourceChoice.literal": source("literal", KIND, "Be brief.", KIND, literal("Be brief.")),
    "SourceChoice.variables": source(
        "variables",
        ["tier", "user_id"],
        '- tier: "beta"',
        '- tier: "beta"\n- user_id: "u1"',
        {"variables": ["tier"]},
    ),
    "SourceChoice.retrieval": source(
        "retrieval", searching(top_k=1)["retrieval"], f"{TEA}\n---\n{JARS}", TEA, searching()
    ),
    "SourceChoice.history": source(
        "history", {"last": 1}, "A: Hello.\n\nuser: Yes.", "user: Yes.", {"history": {}}
    ),
    "SourceChoice.provider": Effect(
        (*FIRST, "provider"),
        "transcript",
        data("context.gathered", "provider"),
        ["told"] * 2,
        ["transcript"] * 2,
        of({"provider": "told"}),
    ),
    "SourceChoice.filter": Effect(
        (*FIRST, "filter"),
        {"limit": 1},
        lambda seen: len(told(seen).splitlines()),
        2,
        1,
        of({"filter": {}}),
    ),
    "SourceChoice.fallback": Effect(
        (*FIRST, "fallback"),
        "nothing",
        data("turn.finished", "status"),
        ["failed"],
        ["done"] * 3,
        of({"provider": "fails"}),
    ),
    "SourceChoice.timeout_s": Effect(
        (*FIRST, "timeout_s"),
        0.01,
        data("provider.failed", "error"),
        [],
        ["ContextUnavailable"],
        of({"provider": "slow"}),
    ),
    "SourceChoice.config": source(
        "config", {"most": 3}, '{"told":{}}', '{"told":{"most":3}}', {"provider": "told"}
    ),
    "SourceChoice.title": source("title", "Rules", KIND, f"Rules:\n{KIND}", literal(KIND)),
    "SourceChoice.priority": Effect(
        (*SOURCES, 1, "priority"), 2, shows(KIND), False, True, CROWDED
    ),
    "SourceChoice.min_tokens": Effect(
        (*SOURCES, 1, "min_tokens"), 4, shows(KIND), False, True, CROWDED
    ),
    "RetrievalChoice.collection": search("collection", "attic", ["manual"], ["attic"]),
    "RetrievalChoice.query": search("query", "all of {tier}", ["tea"], ["all of beta"]),
    "RetrievalChoice.top_k": search("top_k", 1, [5], [1]),
    "RetrievalChoice.min_relevance": search("min_relevance", 0.9, [0.5], [0.9]),
    "RetrievalChoice.filters": search(
        "filters", {"app": {"state": "app_id"}}, [{}], [{"app": "local"}]
    ),
    "HistoryChoice.last": window("last", 1, "user: Yes."),
    "HistoryChoice.tokens": window("tokens", 5, "user: Yes."),
    "HistoryChoice.summarise": window(
        "summarise", "in_short", "summary: 1 before.\n\nuser: Yes.", last=1
    ),
    "FormatChoice.header": format(
        "header",
        "# {title}\n",
        f"Rules:\n{KIND}",
        f"# Rules\n{KIND}",
        literal(KIND, title="Rules"),
    ),
    "FormatChoice.separator": format(
        "separator",
        " ",
        "Be kind.\n\nBe brief.",
        "Be kind. Be brief.",
        literal(KIND),
        literal("Be brief."),
    ),
    "FormatChoice.separators": format(
        "separators", {"retrieval": "\n"}, f"{TEA}\n---\n{JARS}", f"{TEA}\n{JARS}", searching()
    ),
    "FormatChoice.templates": format(
        "templates", {"state": "<{content}>"}, "beta", "<beta>", {"state": "tier"}
    ),
    "FormatChoice.citation": format(
        "citation", " [{source_id}]", TEA, f"{TEA} [tea.md]", searching(top_k=1)
    ),
    "FormatChoice.fence": format(
        "fence", "json", "beta", '```json\n{"content":"beta"}\n```', {"state": "tier"}
    ),
    "FormatChoice.order": format(
        "order",
        "stable",
        "beta\n\nBe kind.",
        "Be kind.\n\nbeta",
        {"state": "tier"},
        literal(KIND),
    ),
}
