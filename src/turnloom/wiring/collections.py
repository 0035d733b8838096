"""Which adapter stands behind a collection."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from importlib.util import find_spec
from inspect import signature
from os.path import realpath
from typing import cast

from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.ports import Embedder, PlainSearch, TokenCounter, Vectors, VectorSearch
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.service.retrieval import TenantSearch, space_of
from turnloom.assembly.spec import Chunking, Document, Matching, RagCollection, RetrievalResult
from turnloom.assembly.spec.retrieval import RetrievalResults
from turnloom.assembly.spec.sources import Assembly, RetrievalSource
from turnloom.board.spec import Public, Reader, Shared, Visibility
from turnloom.errors import UsageError
from turnloom.guards.spec import Guards
from turnloom.kernel.values import Json, preview
from turnloom.log.spec import LOCAL
from turnloom.wiring.adapters import adapter

# What a collection is filled and searched through, or what makes that.
Search = VectorSearch | PlainSearch
Registered = Search | Callable[[], Search]

# The key of metadata that has the path of a document's file.
PATH = "path"


def token_counter() -> TokenCounter:
    """The tokenizer that is installed, or else the estimate."""
    return adapter("splintr").SplintrCounter() if find_spec("splintr") else Estimate()


def comparing(guards: Guards) -> Embedder | None:
    """What compares texts for guards, if they have any compared.

    Raises:
        UsageError: a package is missing.
    """
    detection = guards.loop_detection
    compares = detection is not None and detection.similarity is not None
    return adapter("wordllama").WordLlamaEmbedder() if compares else None


def counter_for(contexts: Iterable[object]) -> TokenCounter:
    """What counts the tokens of context; no tokenizer is loaded where nobody has sources."""
    is_sourced = any(isinstance(each, Assembly) for each in contexts)
    return token_counter() if is_sourced else Estimate()


def open_search(
    vectors: Vectors, name: str, chunking: Chunking, matching: Matching = "vector"
) -> EmbeddingSearch:
    """A collection where vectors are kept; nothing is opened before it is used.

    Raises:
        UsageError: a package is missing.
    """
    embedder = adapter("wordllama").WordLlamaEmbedder()
    splitter = adapter("semantic_text_splitter").SemanticSplitter(chunking, token_counter())
    return EmbeddingSearch(vectors.open(name, space_of(embedder)), embedder, splitter, matching)


def texts_below(folder: str) -> tuple[list[str], list[str]]:
    """The files of texts below a folder, by their paths inside it, in order, with the folders in it
    that cannot be looked into; and the links, which are not followed.

    Raises:
        UsageError: there is no such folder, or it cannot be looked into.
    """
    return adapter("files").texts_below(folder)


def read_document(
    folder: str, path: str, metadata: Mapping[str, Json], visibility: Visibility
) -> Document:
    """A file of texts as a document for whom it is visible: its path in the folder is its id.

    Raises:
        OSError: it cannot be read.
        ValueError: it, or its name, is not text in UTF-8.
    """
    text, format = adapter("files").read_text(folder, path)
    about = {**metadata, PATH: path}
    return Document(path, text, about, format, visibility=visibility, root=root_of(folder))


def root_of(folder: str) -> str:
    """The name that a folder has for the documents of its files, whatever it is called by.

    Raises:
        ValueError: it is not text in UTF-8.
    """
    return realpath(folder).encode().decode()


# What makes a collection the same one wherever it is declared, as code that is loaded again does.
_Likeness = tuple[str, Chunking, Matching]


class Collections:
    """The collections of an app, by name: through what was registered for them, else in the vectors
    of the app."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._registered: dict[str, tuple[type[RagCollection], Registered]] = {}
        self._opened: dict[_Likeness, VectorSearch] = {}
        # Those that were made here and not given.
        self._own: list[VectorSearch] = []

    def register(self, collection: type[RagCollection], through: Registered) -> None:
        """Have a collection filled and searched through an adapter from now on.

        Raises:
            UsageError: it is no collection, another one has its name, or it is in use.
        """
        _check(collection)
        name = collection.name
        if self.known(name) not in (None, collection):
            raise UsageError(
                f"Two collections are called {name!r}. Give one of them another `name`."
            )
        if any(name == opened for opened, *_ in self._opened):
            raise UsageError(f"Collection {name!r} is in use. Register it before it is first used.")
        self._registered[name] = collection, through

    @property
    def names(self) -> Iterable[str]:
        """What the collections are called that are registered."""
        return self._registered.keys()

    def known(self, name: str) -> type[RagCollection] | None:
        """The collection that is registered under a name, if there is one."""
        return self._registered[name][0] if name in self._registered else None

    def open(self, collection: type[RagCollection]) -> VectorSearch:
        """What fills and searches a collection; always the same one.

        Raises:
            UsageError: it is no collection, or a package is missing.
        """
        _check(collection)
        meant = self.known(collection.name) or collection
        key = meant.name, meant.chunking, meant.matching
        if key not in self._opened:
            self._opened[key] = self._make(meant)
        return self._opened[key]

    def open_named(self, contexts: Iterable[object]) -> None:
        """Open the collections that sources name, before a run begins that cannot do without.

        Raises:
            UsageError: one of them cannot be opened, such as for a package that is missing.
        """
        for each in contexts:
            for source in each.sources if isinstance(each, Assembly) else ():
                if isinstance(source, RetrievalSource):
                    self._open_named(source.collection)

    def _open_named(self, collection: type[RagCollection]) -> None:
        try:
            self.open(collection)
        except UsageError as error:
            how = "registered" if self.known(collection.name) else "not registered"
            raise UsageError(
                f"Collection {collection.name!r} is {how}, and cannot be opened. {error}"
            ) from error

    def open_for(self, tenant: str, collection: type[RagCollection]) -> VectorSearch:
        """What fills and searches a collection as a tenant does.

        Raises:
            UsageError: it is no collection, a package is missing, or what is registered for it does
                not tell tenants apart.
        """
        through = self.open(collection)
        if tenant == LOCAL:
            return through  # whose it is unless a call says otherwise
        if not _tells_tenants_apart(through):
            raise UsageError(
                f"What is registered for collection {collection.name!r} does not tell tenants "
                f"apart, so it cannot be that of {tenant!r}. Have its `add` and `remove` take a "
                "`tenant`, and its `search` a `reader`."
            )
        return TenantSearch(through, tenant)

    async def search(
        self,
        collection: type[RagCollection],
        query: str,
        top_k: int,
        min_relevance: float | None,
        filters: Mapping[str, Json],
        reader: Reader,
        now: datetime,
        /,
    ) -> list[RetrievalResult]:
        """What a collection has that fits a query and the reader may see.

        Raises:
            UsageError: it is no collection, or a package is missing.
            CollectionUnavailable: it does not answer.
        """
        through = self.open(collection)
        if _takes(through, "search", "reader"):
            return await through.search(
                query, top_k, min_relevance, filters, reader=reader, now=now
            )
        found = [*await through.search(query, top_k, min_relevance, filters)]
        return RetrievalResults(found, for_all=not any(map(_is_restricted, found)))

    async def aclose(self) -> None:
        """Close what was made here; what was given stays open."""
        while self._own:
            await self._own.pop().aclose()

    def _make(self, collection: type[RagCollection]) -> VectorSearch:
        _, through = self._registered.get(collection.name, (collection, None))
        if through is not None and _is_search(through):
            return cast(VectorSearch, through)
        if through is None:
            made = open_search(
                self._vectors, collection.name, collection.chunking, collection.matching
            )
        else:
            made = cast(Callable[[], VectorSearch], through)()
        self._own.append(made)
        return made


def _check(collection: object) -> None:
    if not isinstance(collection, type) or not issubclass(collection, RagCollection):
        raise UsageError(
            f"{preview(collection)} is no collection. Declare one with "
            "`class Name(RagCollection): ...`."
        )


def _is_restricted(result: object) -> bool:
    """Whether not everybody may see a result."""
    return isinstance(result, RetrievalResult) and result.visibility not in (Public(), Shared())


def _tells_tenants_apart(through: object) -> bool:
    tenanted = _takes(through, "add", "tenant") and _takes(through, "remove", "tenant")
    return tenanted and _takes(through, "search", "reader")


def _takes(through: object, method: str, parameter: str) -> bool:
    found = getattr(through, method, None)
    return found is not None and parameter in signature(found).parameters


def _is_search(through: object) -> bool:
    """Whether this is what searches, and not what makes it; a class makes it."""
    return hasattr(through, "search") and not isinstance(through, type)
