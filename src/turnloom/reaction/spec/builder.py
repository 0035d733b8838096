"""Agents on a board, as they are declared in code."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeAlias

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import Agent, Component
from turnloom.agents.spec.arguments import as_answerer, as_component, as_score
from turnloom.assembly.logic.checking import as_sources
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat
from turnloom.assembly.spec.providers import ContextProvider
from turnloom.assembly.spec.sources import Source
from turnloom.board.spec import FilterConfig, Public, TagFilter, TypeRegistry, Visibility
from turnloom.errors import UnknownType, UsageError
from turnloom.kernel.arguments import (
    as_count,
    as_flag,
    as_function,
    as_name,
    as_names,
    as_text,
    need,
    refuse_repeats,
)
from turnloom.kernel.values import Json, preview
from turnloom.reaction.spec.arguments import (
    as_agent,
    as_chosen,
    as_fan_out,
    as_join,
    as_kind,
    as_predicates,
    as_priority,
    as_producers,
    as_tags,
    as_visibility,
    tool_name,
)
from turnloom.reaction.spec.members import Answerer, ContextFilter, Member, Product, Score
from turnloom.reaction.spec.subscriptions import Batch, Join, Subscription

# A model marked with `@artifact_type`, or the name of one that the app knows.
ArtifactType = type[BaseModel] | str

M = TypeVar("M", bound=BaseModel, default=BaseModel)

# What an agent asks of a value before it takes it.
Where: TypeAlias = Callable[[M], bool | Awaitable[bool]]

_EVERYBODY = Public()


class AgentBuilder:
    """An agent on a board, declared call by call.

    Each call is checked at once: it counts as a whole, or is refused and changes nothing. Whoever
    holds a plan of the board learns from `on_change` that there is more to it.

    Raises:
        UsageError: from each call that cannot mean anything, or says again what was said.
        UnknownType: from a call that names a type that the app does not know.
    """

    def __init__(self, name: str, types: TypeRegistry, on_change: Callable[[], None]) -> None:
        self._member = Member(agent=Agent(name=as_agent(name)))
        self._types = types
        self._on_change = on_change
        self._said: dict[str, str] = {}

    def member(self) -> Member:
        """The agent as it is declared so far."""
        return self._member

    def description(self, text: str) -> Self:
        """Tell the agent what it is and does."""
        with self._call("description") as call:
            self._tell(call, system_message=as_text(text, "The text"))
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
        """Wake the agent when there is an artifact of each type; another call, another reason.

        It takes what every one of `where` says yes to, what one of `from_agents` made, and what has
        one of `tags`.
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
                raise UsageError("It consumes just this already. Drop one of the two calls.")
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
        """Let the agent publish artifacts of these types, and say what holds for them.

        `fan_out` is how many of each one turn gives: so many, or at least and at most so many.
        With `inherit`, only those may see it who may see all that its turn was shown.
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
            refuse_repeats([each.type for each in products], "It publishes {} twice.")
            self._member = replace(self._member, products=products)
        return self

    def with_engines(self, *engines: Answerer) -> Self:
        """Let engines, models by their names, or functions answer for the agent, one after the
        other."""
        with self._call("with_engines"):
            need(engines, "an engine")
            made = [as_answerer(each) for each in engines]
            self._member = replace(self._member, engines=(*self._member.engines, *made))
        return self

    def with_tools(self, *functions: Callable[..., object], max_rounds: int | None = None) -> Self:
        """Let the agent call functions, under their names, in at most `max_rounds` answers of one
        turn."""
        with self._call("with_tools") as call:
            if max_rounds is not None:
                self._tell(call, max_tool_rounds=as_count(max_rounds, "`max_rounds`"))
            need(functions, "a function")
            tools = (*self._member.tools, *functions)
            refuse_repeats([tool_name(each) for each in tools], "Two tools are called {}.")
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
        """Let a provider give the agent its context, within `timeout` seconds.

        `fallback` is asked when it fails; `config` is what both find in their requests.
        """
        with self._call("with_context") as call:
            self._say(call, context=as_chosen(provider, fallback, timeout, config))
        return self

    def with_context_filter(
        self,
        *,
        filters: FilterConfig | None = None,
        limit: int | None = None,
        include_state_keys: Iterable[str] | None = None,
    ) -> Self:
        """Give the agent as its context what a filter finds, and what the turn's state holds."""
        with self._call("with_context_filter") as call:
            keys = include_state_keys
            context = ContextFilter(
                filters=as_kind(filters, FilterConfig, "`filters`"),
                limit=None if limit is None else as_count(limit, "`limit`"),
                include_state_keys=None if keys is None else as_names(keys, "`include_state_keys`"),
            )
            self._say(call, context=context)
        return self

    def with_sources(
        self,
        *sources: Source,
        budget: Budget | None = None,
        format: ContextFormat | None = None,
    ) -> Self:
        """Assemble the agent's context from sources, within a budget of tokens, in a format.

        What `from_state` and functions read is the value of the artifact that woke the agent, or
        of each by the simple name of its type, if there are several.
        """
        with self._call("with_sources") as call:
            need(sources, "a source")
            context = Assembly(
                as_sources(sources),
                as_kind(budget, Budget, "`budget`"),
                as_kind(format, ContextFormat, "`format`") or PLAIN,
            )
            self._say(call, context=context)
        return self

    def with_components(self, *components: Component) -> Self:
        """Put components around the agent's turns and calls, the first one outermost."""
        with self._call("with_components"):
            need(components, "a component")
            found = (*self._member.components, *map(as_component, components))
            refuse_repeats([id(each) for each in found], "A component is there twice.")
            self._member = replace(self._member, components=found)
        return self

    def labels(self, *labels: str) -> Self:
        """Let the agent see what is for those who have these labels."""
        with self._call("labels"):
            need(labels, "a label")
            self._member = replace(
                self._member, labels=self._member.labels | as_names(labels, "the labels")
            )
        return self

    def tenant(self, name: str) -> Self:
        """Say which tenant the agent is of. A board of another tenant is refused, so that an agent
        which is made for one tenant does not end up with another."""
        with self._call("tenant") as call:
            self._say(call, tenant=as_name(name, "The name"))
        return self

    def best_of(self, n: int, score: Score) -> Self:
        """Let the agent try `n` times; the try whose `Answer` has the highest score counts."""
        with self._call("best_of") as call:
            self._say(call, samples=as_count(n, "`n`", least=2), score=as_score(score))
        return self

    def max_concurrency(self, k: int) -> Self:
        """Let the agent take at most `k` turns at the same time."""
        with self._call("max_concurrency") as call:
            self._say(call, max_concurrency=as_count(k, "`k`"))
        return self

    def prevent_self_trigger(self, enabled: bool = True) -> Self:
        """Say whether the agent sleeps on when it publishes what it consumes; else it does."""
        with self._call("prevent_self_trigger") as call:
            self._say(call, wakes_itself=not as_flag(enabled, "`enabled`"))
        return self

    @contextmanager
    def _call(self, method: str) -> Generator[str, None, None]:
        """Let a call count as a whole: what is refused says where, and leaves no trace."""
        before, said = self._member, self._said
        try:
            yield method
        except (UsageError, UnknownType) as error:
            self._member, self._said = before, said
            raise type(error)(f"agent({before.agent.name!r}).{method}(): {error}") from error
        self._on_change()

    def _tell(self, call: str, **said: Any) -> None:
        """Keep what can be said once of the agent itself."""
        self._note(call, said)
        self._member = replace(self._member, agent=self._member.agent.model_copy(update=said))

    def _say(self, call: str, **said: Any) -> None:
        """Keep what can be said once."""
        self._note(call, said)
        self._member = replace(self._member, **said)

    def _note(self, call: str, fields: Iterable[str]) -> None:
        for field in fields:
            if field in self._said:
                raise UsageError(
                    f"`.{self._said[field]}()` has said this already. Keep one of the two calls."
                )
        self._said = {**self._said, **dict.fromkeys(fields, call)}

    def _names(self, types: tuple[ArtifactType, ...]) -> tuple[str, ...]:
        """The full names of types; a model is known to the app from now on."""
        need(types, "a type")
        return tuple(self._name(each) for each in types)

    def _name(self, given: Any) -> str:
        if isinstance(given, str):
            return self._types.resolve(given)
        if isinstance(given, type) and issubclass(given, BaseModel):
            return self._types.register(given)
        raise UsageError(
            f"{preview(given)} is no type of artifacts. "
            "Give classes marked with `@artifact_type`, or their names."
        )
