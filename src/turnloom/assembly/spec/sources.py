"""Sources of context, declared for a step, an agent or a reaction."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction, signature
from typing import Any, TypedDict, Unpack, cast

from turnloom.assembly.spec.formats import PLAIN, Budget, ContextFormat, check_whole
from turnloom.assembly.spec.providers import ChosenProvider, ContextProvider, Message
from turnloom.assembly.spec.retrieval import RagCollection, check_search
from turnloom.errors import UsageError
from turnloom.kernel.values import Json, fixed_text, is_text, preview

# Reads a value from the current state.
Read = Callable[[Any], Any]

# Summarises messages.
Summarise = Callable[[Sequence[Message]], str | Awaitable[str]]


@dataclass(frozen=True, kw_only=True)
class Share:
    """Common options of sources: higher priorities are cut last, `min_tokens` are guaranteed, and
    `title` becomes a header."""

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
    """A value of the state: at a dotted path, or read by a function."""

    at: str | Read

    def __post_init__(self) -> None:
        _check_share(self, "from_state")
        if isinstance(self.at, str):
            check_path(self.at)
        else:
            _check_reader(self.at, "The argument of from_state()")


@dataclass(frozen=True)
class RetrievalSource(Share):
    """The results of a search of a collection."""

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
                f"The query for {self.collection.name!r} is blank. Write a search text."
            )
        if not isinstance(self.query, str):
            _check_reader(self.query, "`query`")
        _check_filters(self.filters)


@dataclass(frozen=True)
class LiteralSource(Share):
    """A constant text."""

    text: str

    def __post_init__(self) -> None:
        _check_share(self, "from_literal")
        object.__setattr__(self, "text", fixed_text(self.text, "from_literal()"))
        if not is_text(self.text) or not self.text.strip():
            raise UsageError(f"from_literal() needs a text, got {preview(self.text)}.")


@dataclass(frozen=True)
class VariableSource(Share):
    """Variables with their values."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_share(self, "from_variables")
        for name in self.names:
            if not is_text(name) or not name:
                raise UsageError(
                    f"from_variables() needs names, got {preview(name)}. Write "
                    "from_variables('tone', 'stage')."
                )
        if not self.names or len({*self.names}) < len(self.names):
            raise UsageError(
                f"from_variables() got {', '.join(map(repr, self.names)) or 'no names'}. "
                "Pass at least one name, without duplicates."
            )


@dataclass(frozen=True)
class ProviderSource(Share):
    """The items of a provider, or of its fallback."""

    chosen: ChosenProvider

    def __post_init__(self) -> None:
        _check_share(self, "from_provider")


@dataclass(frozen=True)
class HistorySource(Share):
    """The messages: all of them, the last ones, or the last ones within a number of tokens.

    `summarise` returns a text that replaces the earlier messages.
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
                "from_history() shows all messages, so `summarise` would never be called. "
                "Set `last` or `tokens`."
            )
        _check_one_parameter(self.summarise, "`summarise`", "the messages")


Source = (
    StateSource | RetrievalSource | LiteralSource | VariableSource | ProviderSource | HistorySource
)


def from_state(at: str | Read, **share: Unpack[Sharing]) -> StateSource:
    """Show a value of the state: at a path, or the result of a function of the state.

    Raises:
        UsageError: `at` is neither a path nor a function of one parameter.
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
    """Show the results of a search; a query may have placeholders such as `{topic}`, and the query
    and filter values may be functions of the state.

    Raises:
        UsageError: an argument is invalid.
    """
    given = dict[str, Any]() if filters is None else filters
    return RetrievalSource(collection, query, top_k, min_relevance, filters=given, **share)


def from_literal(text: str, **share: Unpack[Sharing]) -> LiteralSource:
    """Show a constant text.

    Raises:
        UsageError: it is not a text, or blank.
    """
    return LiteralSource(text, **share)


def from_variables(*names: str, **share: Unpack[Sharing]) -> VariableSource:
    """Show variables with their values.

    Raises:
        UsageError: there is no name, or a duplicate.
    """
    return VariableSource(names, **share)


def from_provider(
    provider: ContextProvider,
    fallback: ContextProvider | None = None,
    timeout: float = 60.0,
    **share: Unpack[Sharing],
) -> ProviderSource:
    """Show the items of a provider, or of its fallback if it fails or exceeds `timeout` seconds.

    Raises:
        UsageError: one of them is not callable, or `timeout` is not positive.
    """
    return ProviderSource(ChosenProvider(provider, fallback, timeout), **share)


def from_history(
    last: int | None = None,
    tokens: int | None = None,
    summarise: Summarise | None = None,
    **share: Unpack[Sharing],
) -> HistorySource:
    """Show the last messages, limited by number or tokens, and a summary of the earlier ones.

    Raises:
        UsageError: a number is less than 1, or there is nothing to summarise.
    """
    return HistorySource(last, tokens, summarise, **share)


def check_path(path: str) -> tuple[str, ...]:
    """The names in a path.

    Raises:
        UsageError: a name is empty.
    """
    names = tuple(path.split("."))
    if not is_text(path) or not all(name.strip() for name in names):
        raise UsageError(
            f"Invalid state path {preview(path)}. Write names separated by dots, as in "
            "'customer.name', or pass a function of the state."
        )
    return names


def _check_share(source: Share, what: str) -> None:
    if type(source.priority) is not int:
        raise UsageError(
            f"`priority` of {what}() must be an integer, not {preview(source.priority)}. "
            "Higher priorities are cut last."
        )
    check_whole(source.min_tokens, "min_tokens", 0)
    if not is_text(source.title):
        raise UsageError(f"`title` of {what}() must be a text, not {preview(source.title)}.")


def _check_collection(collection: object) -> None:
    if not isinstance(collection, type) or not issubclass(collection, RagCollection):
        raise UsageError(
            f"from_retrieval() needs a collection, got {preview(collection)}. Declare one with "
            "`class Name(RagCollection): ...`."
        )


def _check_filters(filters: object) -> None:
    if not isinstance(filters, Mapping):
        raise UsageError(
            f"`filters` must be a mapping, not {preview(filters)}. Map metadata keys to values, "
            'as in {"tenant": "acme"}.'
        )
    for key, value in cast(Mapping[Any, Any], filters).items():
        if callable(value):
            _check_reader(value, f"Filter {key!r}")


def _check_reader(read: object, what: str) -> None:
    """Check a synchronous function of the state."""
    if iscoroutinefunction(read):
        raise UsageError(f"{what} is the coroutine {preview(read)}. Pass a plain function.")
    _check_one_parameter(read, what, "the state")


def _check_one_parameter(function: object, what: str, parameter: str) -> None:
    if not callable(function) or isinstance(function, type):
        raise UsageError(f"{what} must be a function of {parameter}, not {preview(function)}.")
    try:
        taken = signature(function)
    except ValueError:  # a built-in without a signature
        return
    try:
        taken.bind(parameter)
    except TypeError:
        raise UsageError(
            f"{what} is a function with the parameters {taken}. It must take one: {parameter}."
        ) from None


@dataclass(frozen=True, slots=True)
class Assembly:
    """Sources in order, their token budget and their format."""

    sources: tuple[Source, ...]
    budget: Budget | None = None
    format: ContextFormat = PLAIN

    @property
    def shows_history(self) -> bool:
        """Whether the messages are among the sources."""
        return any(isinstance(source, HistorySource) for source in self.sources)
