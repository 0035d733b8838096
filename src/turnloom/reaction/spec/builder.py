"""Builder of agents on a board."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeAlias, cast

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import USER, Agent, Component
from turnloom.agents.spec.arguments import as_answerer, as_component, as_score
from turnloom.assembly.logic.checking import as_sources
from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.assembly.spec.providers import ChosenProvider, ContextProvider
from turnloom.assembly.spec.sources import Assembly, Source
from turnloom.board.spec import FilterConfig, Public, Shared, TagFilter, TypeRegistry, Visibility
from turnloom.board.spec.artifacts import KINDS, choice_of, is_shared, is_visibility
from turnloom.errors import UnknownType, UsageError
from turnloom.kernel.arguments import (
    as_count,
    as_flag,
    as_function,
    as_made,
    as_name,
    as_names,
    as_text,
    need,
    refuse_repeats,
    wrong,
)
from turnloom.kernel.values import Json, preview
from turnloom.reaction.spec.subscriptions import (
    Answerer,
    Batch,
    ContextFilter,
    Join,
    Member,
    Predicate,
    Product,
    Score,
    Subscription,
    is_count,
    is_seconds,
)

K = TypeVar("K")


def as_agent(name: object) -> str:
    """A valid name of an agent: not the user's, and without the '#' of subscription ids."""
    if as_name(name, "The name of an agent") == USER or "#" in str(name):
        raise UsageError(f"{name!r} cannot name an agent. Use a name without '#', not {USER!r}.")
    return str(name)


def as_producers(agents: str | Set[str] | None) -> frozenset[str] | None:
    """The agents in `from_agents`: one, or several."""
    if agents is None:
        return None
    found = as_names({agents} if isinstance(agents, str) else agents, "`from_agents`")
    if not found:
        raise UsageError(
            "`from_agents` is empty, so nothing would match. Name an agent, or drop it."
        )
    return found


def as_priority(value: object, *, spans: bool) -> int:
    """A whole number; in a run, the highest priority goes first."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong("`priority`", value, "Give a whole number; the highest comes first.")
    if value and spans:
        raise UsageError(
            "`priority` orders the turns of one run, but each set of a `join` or `batch` has a "
            "separate run. Drop it."
        )
    return value


def as_kind(value: K | None, kind: type[K], what: str) -> K | None:
    """An instance of a class, or None."""
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
    """A filter of tags; a set matches any of its tags."""
    if tags is None:
        return None
    asked = tags if isinstance(tags, TagFilter) else TagFilter(include=as_names(tags, "`tags`"))
    if _finds_nothing(asked):
        raise wrong("`tags`", tags, "No artifact can match it. Correct the tags.")
    return asked


def as_join(join: Join | None, inputs: int) -> Join | None:
    """The join of several inputs."""
    if as_kind(join, Join, "`join`") is not None and inputs == 1:
        raise UsageError(
            "A join needs at least two inputs. Name the type of each input (twice for two of one "
            "type), or drop `join`."
        )
    return join


def as_visibility(value: Visibility) -> Visibility:
    """Visibility of an agent's artifacts: within its tenant only."""
    if not is_visibility(value):
        allowed = choice_of(kind for kind in KINDS if kind is not Shared)
        raise wrong("`visibility`", value, f"Give a {allowed}.")
    if is_shared(value):
        raise wrong("`visibility`", value, "Only `board.publish(…)` may share.")
    return value


def as_fan_out(value: object) -> tuple[int, int | None]:
    """The minimum and maximum number of artifacts; a single number is both."""
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
            remedy = "Give an exact number (3), or a minimum and a maximum: (1, 3) or (1, None)."
            raise wrong("`fan_out`", value, remedy)


def as_chosen(
    provider: ContextProvider,
    fallback: ContextProvider | None = None,
    timeout: float = 60.0,
    config: Mapping[str, Any] | None = None,
) -> ChosenProvider:
    """A provider with its fallback, timeout and configuration."""
    if fallback is not None:
        as_made(fallback, "`fallback`")
    if not is_seconds(timeout):
        raise wrong("`timeout`", timeout, "Give a number of seconds above 0.")
    options = dict(as_kind(config, Mapping, "`config`") or {})
    as_names(options, "`config`")
    return ChosenProvider(as_made(provider, "The provider"), fallback, timeout, options)


def tool_name(function: Callable[..., Any]) -> str:
    """The name of a tool: that of its function."""
    name = getattr(as_function(function, "A tool"), "__name__", "")
    if not name.isidentifier():
        raise wrong("A tool", function, "Define it with `def`: a tool needs a name.")
    return name


def _finds_nothing(tags: TagFilter) -> bool:
    """Whether it can match nothing: it includes no tag, or only those that it excludes."""
    if tags.include is None:
        return False
    if tags.match == "any":
        return tags.include <= tags.exclude
    return not tags.include or not tags.include.isdisjoint(tags.exclude)


# A model marked with `@artifact_type`, or the name of one.
ArtifactType = type[BaseModel] | str

M = TypeVar("M", bound=BaseModel, default=BaseModel)

# Decides whether an agent takes a value.
Where: TypeAlias = Callable[[M], bool | Awaitable[bool]]

_EVERYBODY = Public()


class AgentBuilder:
    """An agent on a board, declared call by call.

    Each call is checked at once: it is applied as a whole, or raises and changes nothing.
    `on_change` is called after each change.

    Raises:
        UsageError: a call is invalid, or repeats an earlier one.
        UnknownType: a call names a type that the app does not know.
    """

    def __init__(self, name: str, types: TypeRegistry, on_change: Callable[[], None]) -> None:
        self._member = Member(agent=Agent(name=as_agent(name)))
        self._types = types
        self._on_change = on_change
        self._set_by: dict[str, str] = {}

    def member(self) -> Member:
        """The agent as declared so far."""
        return self._member

    def description(self, text: str) -> Self:
        """Set the agent's system message."""
        with self._call("description") as call:
            self._set_agent(call, system_message=as_text(text, "The text"))
        return self

    def consumes(
        self,
        *types: type[M] | str,
        where: Where[M] | Iterable[Where[M]] | None = None,
        from_agents: str | Set[str] | None = None,
        tags: Set[str] | TagFilter | None = None,
        join: Join | None = None,
        batch: Batch | None = None,
        context_provider: ContextProvider | None = None,
        priority: int = 0,
    ) -> Self:
        """Wake the agent when there is an artifact of each type; each call adds a subscription.

        An artifact must pass every function of `where`, come from one of `from_agents`, and match
        `tags`.
        """
        with self._call("consumes"):
            agent, taken = self._member.agent.name, self._member.subscriptions
            names = self._names(types)
            subscription = Subscription(
                id=f"{agent}#{len(taken) + 1}",
                agent=agent,
                types=names,
                where=as_predicates(where),
                from_agents=as_producers(from_agents),
                tags=as_tags(tags),
                join=as_join(join, len(names)),
                batch=as_kind(batch, Batch, "`batch`"),
                context=None if context_provider is None else as_chosen(context_provider),
                priority=as_priority(priority, spans=join is not None or batch is not None),
            )
            if any(replace(each, id=subscription.id) == subscription for each in taken):
                raise UsageError(
                    "The agent already has this subscription. Drop one of the two calls."
                )
            self._member = replace(self._member, subscriptions=(*taken, subscription))
        return self

    def publishes(
        self,
        *types: type[M] | str,
        visibility: Visibility = _EVERYBODY,
        tags: Iterable[str] = (),
        fan_out: int | tuple[int, int | None] | None = None,
        validate: Callable[[M], object] | None = None,
        inherit: bool = False,
    ) -> Self:
        """Let the agent publish artifacts of these types.

        `fan_out` is the number of each that one turn publishes: exact, or a minimum and a maximum.
        With `inherit`, an artifact is visible only to those who may see everything its turn saw.
        """
        with self._call("publishes"):
            names = self._names(types)
            each = Product(
                type="",
                visibility=as_visibility(visibility),
                tags=as_names(tags, "`tags`"),
                fan_out=as_fan_out(fan_out),
                validate=None if validate is None else as_function(validate, "`validate`"),
                inherit=as_flag(inherit, "`inherit`"),
            )
            products = (*self._member.products, *(replace(each, type=name) for name in names))
            refuse_repeats([each.type for each in products], "The agent publishes {} twice.")
            self._member = replace(self._member, products=products)
        return self

    def with_engines(self, *engines: Answerer) -> Self:
        """Answer with engines, models by name, or functions, one after the other."""
        with self._call("with_engines"):
            need(engines, "an engine")
            made = [as_answerer(each) for each in engines]
            self._member = replace(self._member, engines=(*self._member.engines, *made))
        return self

    def with_tools(self, *functions: Callable[..., object], max_rounds: int | None = None) -> Self:
        """Let the agent call functions, by their names, in at most `max_rounds` answers per
        turn."""
        with self._call("with_tools") as call:
            if max_rounds is not None:
                self._set_agent(call, max_tool_rounds=as_count(max_rounds, "`max_rounds`"))
            need(functions, "a function")
            tools = (*self._member.tools, *functions)
            refuse_repeats([tool_name(each) for each in tools], "Two tools have the name {}.")
            self._member = replace(self._member, tools=tools)
        return self

    def with_context(
        self,
        provider: ContextProvider,
        *,
        fallback: ContextProvider | None = None,
        timeout: float = 60.0,
        config: Mapping[str, Json] | None = None,
    ) -> Self:
        """Get the agent's context from a provider, within `timeout` seconds.

        `fallback` replaces a provider that fails; both get `config` in their requests.
        """
        with self._call("with_context") as call:
            self._set(call, context=as_chosen(provider, fallback, timeout, config))
        return self

    def with_context_filter(
        self,
        *,
        filters: FilterConfig | None = None,
        limit: int | None = None,
        include_state_keys: Iterable[str] | None = None,
    ) -> Self:
        """Give the agent the artifacts that a filter finds, and values of the turn's state."""
        with self._call("with_context_filter") as call:
            keys = include_state_keys
            context = ContextFilter(
                filters=as_kind(filters, FilterConfig, "`filters`"),
                limit=None if limit is None else as_count(limit, "`limit`"),
                include_state_keys=None if keys is None else as_names(keys, "`include_state_keys`"),
            )
            self._set(call, context=context)
        return self

    def with_sources(
        self,
        *sources: Source,
        budget: Budget | None = None,
        format: ContextFormat | None = None,
    ) -> Self:
        """Assemble the agent's context from sources, within a budget of tokens, in a format.

        `from_state` and functions read the value of the artifact that woke the agent; of several,
        each by the simple name of its type.
        """
        with self._call("with_sources") as call:
            need(sources, "a source")
            context = Assembly(
                as_sources(sources),
                as_kind(budget, Budget, "`budget`"),
                as_kind(format, ContextFormat, "`format`") or PLAIN,
            )
            self._set(call, context=context)
        return self

    def with_components(self, *components: Component) -> Self:
        """Put components around the agent's turns and calls, the first one outermost."""
        with self._call("with_components"):
            need(components, "a component")
            found = (*self._member.components, *map(as_component, components))
            refuse_repeats([id(each) for each in found], "A component is listed twice.")
            self._member = replace(self._member, components=found)
        return self

    def labels(self, *labels: str) -> Self:
        """Give the agent labels, so that it may see artifacts labelled with them."""
        with self._call("labels"):
            need(labels, "a label")
            self._member = replace(
                self._member, labels=self._member.labels | as_names(labels, "the labels")
            )
        return self

    def tenant(self, name: str) -> Self:
        """Set the agent's tenant. A board of another tenant is refused, so that an agent made for
        one tenant cannot run for another."""
        with self._call("tenant") as call:
            self._set(call, tenant=as_name(name, "The name"))
        return self

    def best_of(self, n: int, score: Score) -> Self:
        """Take `n` samples of each turn; the `Answer` with the highest score counts."""
        with self._call("best_of") as call:
            self._set(call, samples=as_count(n, "`n`", least=2), score=as_score(score))
        return self

    def max_concurrency(self, k: int) -> Self:
        """Let the agent take at most `k` turns at the same time."""
        with self._call("max_concurrency") as call:
            self._set(call, max_concurrency=as_count(k, "`k`"))
        return self

    def prevent_self_trigger(self, enabled: bool = True) -> Self:
        """Set whether the agent's own artifacts do not wake it, which is the default."""
        with self._call("prevent_self_trigger") as call:
            self._set(call, wakes_itself=not as_flag(enabled, "`enabled`"))
        return self

    @contextmanager
    def _call(self, method: str) -> Generator[str, None, None]:
        """Apply a call as a whole: an error names the call, and undoes its changes."""
        before, calls = self._member, self._set_by
        try:
            yield method
        except (UsageError, UnknownType) as error:
            self._member, self._set_by = before, calls
            raise type(error)(f"agent({before.agent.name!r}).{method}(): {error}") from error
        self._on_change()

    def _set_agent(self, call: str, **values: Any) -> None:
        """Set fields of the agent that can be set once."""
        self._note(call, values)
        self._member = replace(self._member, agent=self._member.agent.model_copy(update=values))

    def _set(self, call: str, **values: Any) -> None:
        """Set fields of the member that can be set once."""
        self._note(call, values)
        self._member = replace(self._member, **values)

    def _note(self, call: str, fields: Iterable[str]) -> None:
        for field in fields:
            if field in self._set_by:
                raise UsageError(
                    f"`.{self._set_by[field]}()` has already set this. Keep one of the two calls."
                )
        self._set_by = {**self._set_by, **dict.fromkeys(fields, call)}

    def _names(self, types: tuple[ArtifactType, ...]) -> tuple[str, ...]:
        """The full names of types; models are registered."""
        need(types, "a type")
        return tuple(self._name(each) for each in types)

    def _name(self, given: Any) -> str:
        if isinstance(given, str):
            return self._types.resolve(given)
        if isinstance(given, type) and issubclass(given, BaseModel):
            return self._types.register(given)
        raise UsageError(
            f"Expected a type of artifacts, got {preview(given)}. "
            "Give classes marked with `@artifact_type`, or their names."
        )
