"""What can be said of an agent on a board.

Each function gives an argument as it is kept, and raises a UsageError when it cannot be one.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, TypeVar, cast

from turnloom.agents.spec import USER
from turnloom.assembly.spec.providers import Chosen, ContextProvider
from turnloom.board.spec import TagFilter, Visibility
from turnloom.board.spec.visibility import is_shared, is_visibility
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_function, as_made, as_name, as_names, wrong
from turnloom.reaction.spec.subscriptions import Join, Predicate, is_count, is_seconds

K = TypeVar("K")


def as_agent(name: object) -> str:
    """What an agent may be called: not as people are, nor as subscriptions are numbered."""
    if as_name(name, "The name of an agent") == USER or "#" in str(name):
        raise UsageError(f"No agent can be called {name!r}. Leave out '#', and take no {USER!r}.")
    return str(name)


def as_producers(agents: str | Set[str] | None) -> frozenset[str] | None:
    """The agents whose artifacts are wanted: one, or several."""
    if agents is None:
        return None
    found = as_names({agents} if isinstance(agents, str) else agents, "`from_agents`")
    if not found:
        raise UsageError("`from_agents` is empty, so nothing would come. Name one, or drop it.")
    return found


def as_priority(value: object, *, spans: bool) -> int:
    """A whole number; the highest comes first of what waits in one run."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong("`priority`", value, "Give a whole number; the highest comes first.")
    if value and spans:
        raise UsageError(
            "`priority` puts what waits in one run in order, and what a `join` or `batch` collects "
            "has runs of its own. Drop it."
        )
    return value


def as_kind(value: K | None, kind: type[K], what: str) -> K | None:
    """A value of one kind, or none."""
    if value is not None and not isinstance(value, kind):
        raise wrong(what, value, f"Give a {kind.__name__}.")
    return value


def as_predicates(where: Predicate | Iterable[Predicate] | None) -> tuple[Predicate, ...]:
    """One function, or several."""
    if where is None:
        return ()
    if callable(where):
        return (where,)
    if isinstance(where, str) or not isinstance(cast(object, where), Iterable):
        raise wrong("`where`", where, "Give a function of the value, or several.")
    return tuple(as_function(each, "One of `where`") for each in where)


def as_tags(tags: Set[str] | TagFilter | None) -> TagFilter | None:
    """Which tags are asked for; a set asks for any of them."""
    if tags is None:
        return None
    asked = tags if isinstance(tags, TagFilter) else TagFilter(include=as_names(tags, "`tags`"))
    if _finds_nothing(asked):
        raise wrong("`tags`", tags, "No artifact can be tagged so; ask for tags that can be.")
    return asked


def as_join(join: Join | None, inputs: int) -> Join | None:
    """How inputs belong together, when there are several."""
    if as_kind(join, Join, "`join`") is not None and inputs == 1:
        raise UsageError(
            "One input alone has nothing to join. Name the type of each input (of one that comes "
            "twice, twice), or drop `join`."
        )
    return join


def as_visibility(value: Visibility) -> Visibility:
    """Who may see what an agent publishes: some of its tenant, never others."""
    if not is_visibility(value):
        raise wrong("`visibility`", value, "Give a Public, Private, Labelled, Tenant or After.")
    if is_shared(value):
        raise wrong("`visibility`", value, "Only the program shares: `board.publish(…)`.")
    return value


def as_fan_out(value: object) -> tuple[int, int | None]:
    """How many, at least and at most; a number is exactly so many."""
    match value:
        case None:
            return 0, None
        case int() if is_count(value):
            return value, value
        case (int(low), int(high)) if 0 <= low <= high and is_count(high):
            return low, high
        case (int(low), None) if low >= 0:
            return low, None
        case _:
            remedy = "Give how many (3), or at least and at most how many: (1, 3) or (1, None)."
            raise wrong("`fan_out`", value, remedy)


def as_chosen(
    provider: ContextProvider,
    fallback: ContextProvider | None = None,
    timeout: float = 60.0,
    config: Mapping[str, Any] | None = None,
) -> Chosen:
    """A provider, what is used in its place when it fails, and what it is told."""
    if fallback is not None:
        as_made(fallback, "`fallback`")
    if not is_seconds(timeout):
        raise wrong("`timeout`", timeout, "Give seconds, above 0.")
    told = dict(as_kind(config, Mapping, "`config`") or {})
    as_names(told, "`config`")
    return Chosen(as_made(provider, "The provider"), fallback, timeout, told)


def tool_name(function: Callable[..., Any]) -> str:
    """What a tool is called: as its function."""
    name = getattr(as_function(function, "A tool"), "__name__", "")
    if not name.isidentifier():
        raise wrong("A tool", function, "Write it with `def`: tools are called by their names.")
    return name


def _finds_nothing(tags: TagFilter) -> bool:
    """Whether it asks for none of all tags, or for what it forbids."""
    if tags.include is None:
        return False
    if tags.match == "any":
        return tags.include <= tags.exclude
    return not tags.include or not tags.include.isdisjoint(tags.exclude)
