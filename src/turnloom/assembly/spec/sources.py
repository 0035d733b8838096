"""Sources of context, as a step, an agent or a reaction declares them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction, signature
from typing import Any, TypedDict, Unpack, cast

from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat, check_whole
from turnloom.assembly.spec.providers import ChosenProvider, ContextProvider, Message
from turnloom.assembly.spec.retrieval import RagCollection, check_search
from turnloom.errors import UsageError
from turnloom.kernel.values import Json, fixed_text, is_text, preview

# Gives a value out of the state of the moment.
Read = Callable[[Any], Any]

# Gives a text in the place of messages.
Summarise = Callable[[Sequence[Message]], str | Awaitable[str]]


@dataclass(frozen=True, kw_only=True)
class Share:
    """What all sources have: the highest priority is shown longest, `min_tokens` are kept for it in
    any case, and a title stands above what it shows."""

    priority: int = 0
    min_tokens: int = 0
    title: str = ""


class Sharing(TypedDict, total=False):
    """A `Share` as keywords."""

    priority: int
    min_tokens: int
    title: str


@dataclass(frozen=True)
class StateSource(Share):
    """A value of the state: at a path of names with dots between them, or what a function reads."""

    at: str | Read

    def __post_init__(self) -> None:
        _check_share(self, "from_state")
        if isinstance(self.at, str):
            check_path(self.at)
        else:
            _check_reader(self.at, "from_state() gets")


@dataclass(frozen=True)
class RetrievalSource(Share):
    """What a search of a collection finds."""

    collection: type[RagCollection]
    query: str | Read
    top_k: int = 5
    min_relevance: float | None = None
    filters: Mapping[str, Json | Read] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        _check_share(self, "from_retrieval")
        _check_collection(self.collection)
        constant = self.query if isinstance(self.query, str) else "?"
        check_search(constant, self.top_k, self.min_relevance)
        if not constant.strip():
            raise UsageError(
                f"The query for {self.collection.name!r} is blank, and would find nothing. "
                "Write what is looked for."
            )
        if not isinstance(self.query, str):
            _check_reader(self.query, "`query` is")
        _check_filters(self.filters)


@dataclass(frozen=True)
class LiteralSource(Share):
    """A text that is always the same."""

    text: str

    def __post_init__(self) -> None:
        _check_share(self, "from_literal")
        object.__setattr__(self, "text", fixed_text(self.text, "from_literal()"))
        if not is_text(self.text) or not self.text.strip():
            raise UsageError(f"from_literal() gets {preview(self.text)}. Give a text to be shown.")


@dataclass(frozen=True)
class VariableSource(Share):
    """Variables with their values."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_share(self, "from_variables")
        for name in self.names:
            if not is_text(name) or not name:
                raise UsageError(
                    f"from_variables() gets {preview(name)}. Give names, as in "
                    "from_variables('tone', 'stage')."
                )
        if not self.names or len({*self.names}) < len(self.names):
            raise UsageError(
                f"from_variables() gets {', '.join(map(repr, self.names)) or 'nothing'}. "
                "Give at least one name, and each once."
            )


@dataclass(frozen=True)
class ProviderSource(Share):
    """The items that a provider gives, or its fallback."""

    chosen: ChosenProvider

    def __post_init__(self) -> None:
        _check_share(self, "from_provider")


@dataclass(frozen=True)
class HistorySource(Share):
    """What was said: all of it, the last messages, or the last tokens' worth of messages.

    `summarise` gives a text in the place of the messages before those.
    """

    last: int | None = None
    tokens: int | None = None
    summarise: Summarise | None = None

    def __post_init__(self) -> None:
        _check_share(self, "from_history")
        for name in ("last", "tokens"):
            value = getattr(self, name)
            if value is not None:
                check_whole(value, name, 1)
        if self.summarise is None:
            return
        if self.last is None and self.tokens is None:
            raise UsageError(
                "from_history() shows everything, so `summarise` would never be called. "
                "Say with `last` or `tokens` how much is shown as it is."
            )
        _check_one_parameter(self.summarise, "`summarise` is", "the messages")


Source = (
    StateSource | RetrievalSource | LiteralSource | VariableSource | ProviderSource | HistorySource
)


def from_state(at: str | Read, **share: Unpack[Sharing]) -> StateSource:
    """Show a value of the state: at a path, or what a function of the state gives.

    Raises:
        UsageError: it is neither a path nor a function of one parameter.
    """
    return StateSource(at, **share)


def from_retrieval(
    collection: type[RagCollection],
    query: str | Read,
    top_k: int = 5,
    min_relevance: float | None = None,
    filters: Mapping[str, Json | Read] | None = None,
    **share: Unpack[Sharing],
) -> RetrievalSource:
    """Show what a search of a collection finds; a query may have places such as `{topic}`, and the
    query and the values of filters may be functions of the state.

    Raises:
        UsageError: the search cannot be made.
    """
    given = dict[str, Any]() if filters is None else filters
    return RetrievalSource(collection, query, top_k, min_relevance, filters=given, **share)


def from_literal(text: str, **share: Unpack[Sharing]) -> LiteralSource:
    """Show a text as it is.

    Raises:
        UsageError: it is none.
    """
    return LiteralSource(text, **share)


def from_variables(*names: str, **share: Unpack[Sharing]) -> VariableSource:
    """Show variables with their values.

    Raises:
        UsageError: none is named, or one twice.
    """
    return VariableSource(names, **share)


def from_provider(
    provider: ContextProvider,
    fallback: ContextProvider | None = None,
    timeout: float = 60.0,
    **share: Unpack[Sharing],
) -> ProviderSource:
    """Show the items that a provider gives in `timeout` seconds, or else those of its fallback.

    Raises:
        UsageError: one of them cannot be called, or there is no time for it.
    """
    return ProviderSource(ChosenProvider(provider, fallback, timeout), **share)


def from_history(
    last: int | None = None,
    tokens: int | None = None,
    summarise: Summarise | None = None,
    **share: Unpack[Sharing],
) -> HistorySource:
    """Show what was said: the last messages, as many of them as have so many tokens, and a summary
    in the place of those before.

    Raises:
        UsageError: a number is less than 1, or there is nothing to summarise.
    """
    return HistorySource(last, tokens, summarise, **share)


def check_path(path: str) -> tuple[str, ...]:
    """The names that a path goes through.

    Raises:
        UsageError: one of them is empty.
    """
    names = tuple(path.split("."))
    if not is_text(path) or not all(name.strip() for name in names):
        raise UsageError(
            f"{preview(path)} is no path of the state. Write names with dots between them, as in "
            "'customer.name', or give a function of the state."
        )
    return names


def _check_share(source: Share, what: str) -> None:
    if type(source.priority) is not int:
        raise UsageError(
            f"`priority` of {what}() is {preview(source.priority)}. Give a whole number; the "
            "highest is shown longest."
        )
    check_whole(source.min_tokens, "min_tokens", 0)
    if not is_text(source.title):
        raise UsageError(f"`title` of {what}() is {preview(source.title)}. Give a text.")


def _check_collection(collection: object) -> None:
    if not isinstance(collection, type) or not issubclass(collection, RagCollection):
        raise UsageError(
            f"from_retrieval() gets {preview(collection)}, which is no collection. Declare one "
            "with `class Name(RagCollection): ...`."
        )


def _check_filters(filters: object) -> None:
    if not isinstance(filters, Mapping):
        raise UsageError(
            f"`filters` is {preview(filters)}. Write keys of metadata with their values, as in "
            '{"tenant": "acme"}.'
        )
    for key, value in cast(Mapping[Any, Any], filters).items():
        if callable(value):
            _check_reader(value, f"Filter {key!r} is")


def _check_reader(read: object, what: str) -> None:
    """A function of the state; it reads, so it has nothing to wait for."""
    if iscoroutinefunction(read):
        raise UsageError(f"{what} the coroutine {preview(read)}. Give a plain function.")
    _check_one_parameter(read, what, "the state")


def _check_one_parameter(function: object, what: str, parameter: str) -> None:
    if not callable(function) or isinstance(function, type):
        raise UsageError(f"{what} {preview(function)}. Give a function of {parameter}.")
    try:
        taken = signature(function)
    except ValueError:  # built into Python without one
        return
    try:
        taken.bind(parameter)
    except TypeError:
        raise UsageError(
            f"{what} a function with the parameters {taken}. Let it take one: {parameter}."
        ) from None


@dataclass(frozen=True, slots=True)
class Assembly:
    """Sources in their order, how many tokens they may come to, and how that is written."""

    sources: tuple[Source, ...]
    budget: Budget | None = None
    format: ContextFormat = PLAIN

    @property
    def shows_history(self) -> bool:
        """Whether what was said is among it."""
        return any(isinstance(source, HistorySource) for source in self.sources)
