"""Descriptions of sources, for plans and for the log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from textwrap import indent
from typing import Any, cast

from turnloom.assembly.logic.states import At
from turnloom.assembly.spec.formats import PLAIN
from turnloom.assembly.spec.providers import ChosenProvider, declared_of
from turnloom.assembly.spec.sources import (
    Assembly,
    HistorySource,
    LiteralSource,
    ProviderSource,
    RetrievalSource,
    Source,
    StateSource,
    VariableSource,
)
from turnloom.kernel.code import qualified
from turnloom.kernel.values import preview


def describe_sources(sources: Iterable[Source]) -> str:
    """Sources line by line, as declared; identical in every process."""
    return "\n".join(f"{number}. {_call(each)}" for number, each in enumerate(sources, 1))


def describe_assembly(assembly: Assembly) -> str:
    """An assembly line by line: its sources, budget and format."""
    lines = [describe_sources(assembly.sources)]
    if assembly.budget is not None:
        lines.append(f"budget: {assembly.budget.max_tokens} tokens")
    said = [(each.name, getattr(assembly.format, each.name)) for each in fields(PLAIN)]
    written = [_argument(name, value) for name, value in said if value != getattr(PLAIN, name)]
    return "\n".join([*lines, f"format: {', '.join(written)}"] if written else lines)


def describe_provider(chosen: ChosenProvider) -> str:
    """A provider, as declared as a source."""
    return f"from_provider({', '.join(_provider(chosen))})"


def settings_of(context: ChosenProvider | Assembly | None) -> str:
    """The providers of a context with all of their settings: equal ones are asked for the same."""
    match context:
        case None:
            return ""
        case Assembly(sources=sources):
            found = [each.chosen for each in sources if isinstance(each, ProviderSource)]
        case _:
            found = [*getattr(context.provider, "choices", (context,))]
    return "\n".join(
        f"{each.name} {_made(each.provider)} {_made(each.fallback)} {_made(each.config)}"
        for each in found
    )


def by_agent(contexts: Mapping[str, str]) -> str:
    """Descriptions of contexts, grouped by agent."""
    return "\n".join(f"{agent}\n{indent(said, '  ')}" for agent, said in contexts.items())


def origin_of(place: int, source: Source) -> str:
    """The name of a source in the log: its index and its function."""
    match source:
        case StateSource(at=at):
            written = f"from_state({at if isinstance(at, str) else qualified(at)})"
        case RetrievalSource(collection=collection):
            written = f"from_retrieval({collection.name})"
        case LiteralSource():
            written = "from_literal"
        case VariableSource(names=names):
            written = f"from_variables({', '.join(names)})"
        case ProviderSource(chosen=chosen):
            written = f"from_provider({chosen.name or name_of(chosen.provider)})"
        case HistorySource():
            written = "from_history"
    return f"context[{place}] {written}"


def name_of(thing: Any) -> str:
    """The name of a provider or function, or else of its class."""
    return qualified(thing).rpartition(".")[2]


def _call(source: Source) -> str:
    match source:
        case StateSource(at=at):
            function, own = "from_state", [_argument("", at)]
        case RetrievalSource():
            function, own = "from_retrieval", [*_search(source)]
        case LiteralSource(text=text):
            function, own = "from_literal", [preview(text)]
        case VariableSource(names=names):
            function, own = "from_variables", [*map(repr, names)]
        case ProviderSource():
            function, own = "from_provider", [*_provider(source.chosen)]
        case HistorySource():
            function, own = "from_history", [*_window(source)]
    return f"{function}({', '.join([*own, *_share(source)])})"


def _search(source: RetrievalSource) -> Iterator[str]:
    yield source.collection.name
    yield _argument("query", source.query)
    yield _argument("top_k", source.top_k)
    if source.min_relevance is not None:
        yield _argument("min_relevance", source.min_relevance)
    if source.filters:
        written = (f"{key!r}: {_argument('', value)}" for key, value in source.filters.items())
        yield f"filters={{{', '.join(written)}}}"


def _provider(chosen: ChosenProvider) -> Iterator[str]:
    yield chosen.name or _made(chosen.provider)
    if chosen.fallback is not None:
        yield f"fallback={qualified(chosen.fallback)}"
    yield f"timeout={chosen.timeout:g}"


def _made(value: object) -> str:
    """A provider or one of its arguments, as declared."""
    match value:
        case _ if callable(value):
            written = ", ".join(f"{key}={_made(each)}" for key, each in declared_of(value).items())
            return f"{qualified(value)}({written})" if written else qualified(value)
        case list() | tuple():
            return f"[{', '.join(map(_made, cast(Sequence[object], value)))}]"
        case Mapping():
            entries = cast(Mapping[str, object], value).items()
            return f"{{{', '.join(f'{key!r}: {_made(each)}' for key, each in entries)}}}"
        case _:
            return preview(value)


def _window(source: HistorySource) -> Iterator[str]:
    for name in ("last", "tokens", "summarise"):
        value = getattr(source, name)
        if value is not None:
            yield _argument(name, value)


def _share(source: Source) -> Iterator[str]:
    for name in ("priority", "min_tokens", "title"):
        value = getattr(source, name)
        if value:
            yield _argument(name, value)


def _argument(name: str, value: Any) -> str:
    if isinstance(value, At):
        written = f"from_state({value.path!r})"
    else:
        written = qualified(value) if callable(value) else preview(value)
    return f"{name}={written}" if name else written
