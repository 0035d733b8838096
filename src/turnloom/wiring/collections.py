"""Collections, and the adapters that store and search them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from importlib.util import find_spec
from inspect import signature
from os.path import realpath
from typing import cast

from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.ports import Embedder, PlainSearch, TokenCounter, Vectors, VectorSearch
from turnloom.assembly.service import EmbeddingSearch
from turnloom.assembly.service.retrieval import ConfinedSearch, TenantSearch, space_of
from turnloom.assembly.spec import Chunking, Document, Matching, RagCollection, RetrievalResult
from turnloom.assembly.spec.retrieval import RetrievalResults
from turnloom.assembly.spec.sources import Assembly, RetrievalSource
from turnloom.board.spec import Public, Reader, Shared, Visibility
from turnloom.errors import UsageError
from turnloom.guards.spec import Guards
from turnloom.kernel.values import Json, preview
from turnloom.log.spec import LOCAL
from turnloom.wiring.adapters import adapter

# Adapter of a collection, or a factory of one.
Search = VectorSearch | PlainSearch
Registered = Search | Callable[[], Search]

# Metadata key with the path of a document's file.
PATH = "path"


def token_counter() -> TokenCounter:
    """The installed tokenizer, or an estimate."""
    return adapter("splintr").SplintrCounter() if find_spec("splintr") else Estimate()


def comparing(guards: Guards) -> Embedder | None:
    """Embedder for guards that compare texts, or None.

    Raises:
        UsageError: a package is missing.
    """
    detection = guards.loop_detection
    compares = detection is not None and detection.similarity is not None
    return adapter("wordllama").WordLlamaEmbedder() if compares else None


def counter_for(contexts: Iterable[object]) -> TokenCounter:
    """Token counter for assembled context. Without sources no tokenizer is loaded."""
    is_sourced = any(isinstance(each, Assembly) for each in contexts)
    return token_counter() if is_sourced else Estimate()


def open_search(
    vectors: Vectors, name: str, chunking: Chunking, matching: Matching = "vector"
) -> EmbeddingSearch:
    """Search of a collection in the vector store. Connections are opened on first use.

    Raises:
        UsageError: a package is missing.
    """
    embedder = adapter("wordllama").WordLlamaEmbedder()
    splitter = adapter("semantic_text_splitter").SemanticSplitter(chunking, token_counter())
    return EmbeddingSearch(vectors.open(name, space_of(embedder)), embedder, splitter, matching)


def texts_below(folder: str) -> tuple[list[str], list[str]]:
    """List text files below a folder, as sorted relative paths with unreadable folders; and
    symbolic links, which are not followed.

    Raises:
        UsageError: the folder does not exist, or cannot be read.
    """
    return adapter("files").texts_below(folder)


def read_document(
    folder: str, path: str, metadata: Mapping[str, Json], visibility: Visibility
) -> Document:
    """Read a text file as a document. Its id is its path in the folder.

    Raises:
        OSError: it cannot be read.
        ValueError: it, or its name, is not UTF-8.
    """
    text, format = adapter("files").read_text(folder, path)
    about = {**metadata, PATH: path}
    return Document(path, text, about, format, visibility=visibility, root=root_of(folder))


def root_of(folder: str) -> str:
    """Canonical name of a folder: the same for every path that leads to it.

    Raises:
        ValueError: the name is not UTF-8.
    """
    return realpath(folder).encode().decode()


# Key of a collection. It does not change when the code that declares it is loaded again.
_CollectionKey = tuple[str, Chunking, Matching]


class Collections:
    """Collections of an app by name, in their registered adapters or in the app's vector store."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._registered: dict[str, tuple[type[RagCollection], Registered]] = {}
        self._opened: dict[_CollectionKey, VectorSearch] = {}
        # Searches created here, which this object closes.
        self._own: list[VectorSearch] = []

    def register(self, collection: type[RagCollection], through: Registered) -> None:
        """Use an adapter to fill and search a collection.

        Raises:
            UsageError: it is not a collection, its name is taken, or it is in use.
        """
        _check(collection)
        name = collection.name
        if self.known(name) not in (None, collection):
            raise UsageError(
                f"Two collections are named {name!r}. Change the `name` of one of them."
            )
        if any(name == opened for opened, *_ in self._opened):
            raise UsageError(f"Collection {name!r} is in use. Register it before its first use.")
        self._registered[name] = collection, through

    @property
    def names(self) -> Iterable[str]:
        """Names of registered collections."""
        return self._registered.keys()

    def known(self, name: str) -> type[RagCollection] | None:
        """Return the collection registered under a name, or None."""
        return self._registered[name][0] if name in self._registered else None

    def open(self, collection: type[RagCollection]) -> VectorSearch:
        """Return the search of a collection; each collection has one.

        Raises:
            UsageError: it is not a collection, or a package is missing.
        """
        _check(collection)
        meant = self.known(collection.name) or collection
        key = meant.name, meant.chunking, meant.matching
        if key not in self._opened:
            self._opened[key] = self._make(meant)
        return self._opened[key]

    def open_named(self, contexts: Iterable[object]) -> None:
        """Open the collections of retrieval sources, so that a run fails early if one is
        unavailable.

        Raises:
            UsageError: a collection cannot be opened, for example because a package is missing.
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
                f"Collection {collection.name!r} ({how}) cannot be opened. {error}"
            ) from error

    def open_for(self, tenant: str, collection: type[RagCollection]) -> VectorSearch:
        """Return the search of a collection for one tenant.

        Raises:
            UsageError: it is not a collection, a package is missing, or its adapter does not
                separate tenants.
        """
        through = self.open(collection)
        if tenant == LOCAL:
            return through  # the default tenant
        _check_apart(collection, through, tenant)
        return TenantSearch(through, tenant)

    def open_only_for(self, tenant: str, collection: type[RagCollection]) -> VectorSearch:
        """Return the search of a collection for one tenant, which refuses calls for another one.

        Raises:
            UsageError: as `open_for`.
        """
        through = self.open(collection)
        if tenant == LOCAL and not _tells_tenants_apart(through):
            return through  # it has one tenant
        _check_apart(collection, through, tenant)
        return ConfinedSearch(through, tenant)

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
        """Search a collection for results that the reader may see.

        Raises:
            UsageError: it is not a collection, or a package is missing.
            CollectionUnavailable: the collection does not respond.
        """
        through = self.open(collection)
        if _takes(through, "search", "reader"):
            return await through.search(
                query, top_k, min_relevance, filters, reader=reader, now=now
            )
        found = [*await through.search(query, top_k, min_relevance, filters)]
        return RetrievalResults(found, for_all=not any(map(_is_restricted, found)))

    async def aclose(self) -> None:
        """Close the searches created here; objects of the program stay open."""
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
            f"Expected a RagCollection class, got {preview(collection)}. Declare one: "
            "`class Name(RagCollection): ...`."
        )


def _is_restricted(result: object) -> bool:
    """Whether a result is hidden from some readers."""
    return isinstance(result, RetrievalResult) and result.visibility not in (Public(), Shared())


def _check_apart(collection: type[RagCollection], through: object, tenant: str) -> None:
    """Refuse an adapter that does not separate tenants.

    Raises:
        UsageError: it does not.
    """
    if not _tells_tenants_apart(through):
        raise UsageError(
            f"The adapter of collection {collection.name!r} does not separate tenants, so "
            f"tenant {tenant!r} cannot use it. Add a parameter `tenant` to `add` and "
            "`remove`, and `reader` to `search`."
        )


def _tells_tenants_apart(through: object) -> bool:
    tenanted = _takes(through, "add", "tenant") and _takes(through, "remove", "tenant")
    return tenanted and _takes(through, "search", "reader")


def _takes(through: object, method: str, parameter: str) -> bool:
    found = getattr(through, method, None)
    return found is not None and parameter in signature(found).parameters


def _is_search(through: object) -> bool:
    """Whether this is a search, not a factory of one. A class is a factory."""
    return hasattr(through, "search") and not isinstance(through, type)
