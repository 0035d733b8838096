"""Contract suite for document stores."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from turnloom.errors import TurnloomError, UsageError
from turnloom.testing.contracts.facts import PATIENCE, refused
from turnloom.variables.ports import DocumentStore, Lookup, Scalar

# Adds documents to a collection of a database (None: the default one); the last is the newest.
Put = Callable[[str | None, str, Sequence[Mapping[str, Any]]], Awaitable[None]]

# A database other than the default one.
OTHER = "turnloom_contract"
TENANT = "acme"
STRANGERS: tuple[Any, ...] = ("globex", None, "", 5, True, [TENANT], {"id": TENANT}, "ACME")
# Values that must not equal a string, although some databases convert them.
NOT_TEXTS: dict[str, tuple[Any, ...]] = {
    "5": (5, 5.0, ["5"]),
    "true": (True, [["true"]]),
    "null": (None,),
    "x": (["x"], ["y", "x"], {"x": "x"}, "X", " x", "x ", "xx"),
    '{"a":1}': ({"a": 1},),
    "": (None, [], {}, " ", 0),
}
HOSTILE = (
    *("it's", 'a"b', "a; DROP TABLE users", "%s %(x)s", "a'); --", "走る", "$where", "{}", "a b"),
    *("*", "?", "users\0", "\ud800", "x" * 300, "$cmd", "..", "../documents", "a/b", "a\\b", ""),
)
WORDS = ("ключ", "走る", "größe", "it's", "a b", "50%", "😀", "select", "Users")
BAD_KEYS = ("", ".", "a.", ".a", "a..b", "$where", "a.$gt", 'a"b', "a\\b", "a\0", "a\nb", "\ud800")
EVERYTHING: dict[str, Any] = {
    "key": "all",
    "null": None,
    "yes": True,
    "no": False,
    "small": -1,
    "large": 2**53 + 1,
    "fraction": 0.1,
    "text": "line\nline \u2028 \U0001f600 'quoted' \"twice\" \\",
    "empty": ["", [], {}, [[]], [{}]],
    "deep": {"a": [{"b": {"c": [None, 1, "走る"]}}]},
    "ключ": {"日本": "ü"},
}


def lookup(value: Scalar = "x", key: str = "key", **more: Any) -> Lookup:
    """A lookup in the collection `users` of the default database, unless `more` says otherwise."""
    wanted: dict[str, Any] = {"database": None, "collection": "users", "tenant": TENANT, **more}
    return Lookup(key=key, value=value, **wanted)


class DocumentStoreContract:
    """The suite for `DocumentStore`."""

    # Names of collections to test; override it for a database that allows fewer.
    names: tuple[str, ...] = WORDS

    def fresh(self) -> AbstractAsyncContextManager[tuple[DocumentStore, Put]]:
        """An empty store, and a function that adds documents to it."""
        raise NotImplementedError

    async def test_the_newest_is_found(self) -> None:
        """A lookup returns the document that was added last, regardless of its content."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x", "n": n} for n in (3, 1, 2)])
            await put(None, "users", [{"key": "y", "n": 9}, {"n": 10}])
            await _expect(store, lookup("x"), {"key": "x", "n": 2})
            await put(None, "users", [{"key": "x", "n": 0}])
            await _expect(store, lookup("x"), {"key": "x", "n": 0})

    async def test_nothing_is_found_where_nothing_is(self) -> None:
        """A missing database, collection, key or value yields None."""
        async with self.fresh() as (store, put):
            assert await store.newest(lookup()) is None
            assert await store.newest(lookup(database=OTHER)) is None
            await put(None, "users", [{"key": "x"}])
            for wanted in (
                *(lookup("y"), lookup(key="name"), lookup(key="key.name")),
                *(lookup(collection="user"), lookup(collection="Users"), lookup(database=OTHER)),
            ):
                assert await store.newest(wanted) is None

    async def test_databases_and_collections_are_separate(self) -> None:
        """Databases and collections with the same documents are separate."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x", "n": 1}])
            await put(OTHER, "users", [{"key": "x", "n": 2}])
            await put(None, "orders", [{"key": "x", "n": 3}])
            await _expect(store, lookup(), {"key": "x", "n": 1})
            await _expect(store, lookup(database=OTHER), {"key": "x", "n": 2})
            await _expect(store, lookup(collection="orders"), {"key": "x", "n": 3})

    async def test_a_document_of_the_tenant_is_found(self) -> None:
        """A document may name the tenant in either field, in both, or in none."""
        async with self.fresh() as (store, put):
            for fields in (("app_id",), ("enterprise_id",), ("app_id", "enterprise_id"), ()):
                document = {"key": "x"} | dict.fromkeys(fields, TENANT) | {"n": str(fields)}
                await put(None, "users", [document])
                await _expect(store, lookup(), document)

    async def test_a_document_of_another_tenant_is_not_found(self) -> None:
        """A tenant field with any other value, including null, hides the document."""
        async with self.fresh() as (store, put):
            for stranger in STRANGERS:
                await put(None, "users", [{"key": "x", "app_id": stranger}])
                await put(None, "users", [{"key": "x", "enterprise_id": stranger}])
                await put(
                    None, "users", [{"key": "x", "app_id": TENANT, "enterprise_id": stranger}]
                )
                await put(
                    None, "users", [{"key": "x", "app_id": stranger, "enterprise_id": TENANT}]
                )
            assert await store.newest(lookup()) is None

    async def test_a_stranger_does_not_hide_an_older_document(self) -> None:
        """Documents of other tenants do not hide an older document of the tenant."""
        async with self.fresh() as (store, put):
            ours = {"key": "x", "app_id": TENANT, "n": 1}
            theirs = [{"key": "x", "app_id": stranger} for stranger in STRANGERS]
            await put(None, "users", [{"key": "x", "n": 0}, ours, *theirs])
            await _expect(store, lookup(), ours)
            await _expect(store, lookup(TENANT, "app_id"), ours)
            await _expect(store, lookup(tenant="globex"), {"key": "x", "app_id": "globex"})
            assert await store.newest(lookup(TENANT, "app_id", tenant="globex")) is None

    async def test_a_text_equals_that_text_only(self) -> None:
        """A string equals only the same string: no number, array, object or similar string."""
        async with self.fresh() as (store, put):
            for text, others in NOT_TEXTS.items():
                await put(None, "users", [{"key": other} for other in others])
                assert await store.newest(lookup(text)) is None
                document = {"key": text, "n": 1}
                await put(None, "users", [document, *({"key": other} for other in others)])
                await _expect(store, lookup(text), document)

    async def test_a_dotted_key(self) -> None:
        """Dots in a key lead into objects, not into arrays or names with dots."""
        async with self.fresh() as (store, put):
            found = {"owner": {"mail": {"work": "x"}}, "n": 1}
            await put(None, "users", [found, {"owner": {"mail": "x"}}, {"owner": "x"}])
            await put(None, "users", [{"owner": [{"mail": {"work": "x"}}]}, {"tags": ["x"]}])
            await put(None, "users", [{"owner": {"mail": [{"work": "x"}]}}, {"tags": {"0": "y"}}])
            await _expect(store, lookup(key="owner.mail.work"), found)
            assert await store.newest(lookup(key="tags.0")) is None
            await _expect(store, lookup("y", "tags.0"), {"tags": {"0": "y"}})

    async def test_a_filter_of_several_keys(self) -> None:
        """A document is found only if it has every value of the filter, at any depth."""
        async with self.fresh() as (store, put):
            found = {"key": "x", "a": {"b": "y"}, "kind": "it's", "n": 1}
            await put(None, "users", [found, {**found, "a": {"b": "z"}}, {**found, "kind": "its"}])
            await put(None, "users", [{"key": "x"}, {**found, "key": "y"}, {**found, "a": ["y"]}])
            wanted = lookup(filter=(("a.b", "y"), ("kind", "it's")))
            await _expect(store, wanted, found)
            await store.index(wanted)
            await _expect(store, wanted, found)
            assert await store.newest(lookup(filter=(("a.b", "w"),))) is None
            await put(None, "users", [{**found, "app_id": "globex"}])
            await _expect(store, wanted, found)
            with refused(UsageError):
                await store.newest(lookup(filter=(("a.$gt", "y"),)))

    async def test_a_number_equals_that_number_only(self) -> None:
        """A number equals the same number, and a boolean the same boolean; no text, no array."""
        async with self.fresh() as (store, put):
            values = (5, "5", [5], 1, 0, True, False, "true", None, 0.5, "0.5", 2**53)
            documents: list[dict[str, Any]] = [
                {"key": value, "n": n} for n, value in enumerate(values)
            ]
            await put(None, "users", documents)
            for document in documents:
                if isinstance(document["key"], int | float):
                    await _expect(store, lookup(document["key"]), document)
                    wanted = lookup(document["n"], "n", filter=(("key", document["key"]),))
                    await _expect(store, wanted, document)
            await put(None, "users", [{"key": 5.0, "n": 2}])
            await _expect(store, lookup(5), {"key": 5.0, "n": 2})

    async def test_any_script(self) -> None:
        """Keys and values may be in any script."""
        async with self.fresh() as (store, put):
            for word in WORDS:
                document = {word: {word: word}, "n": 1}
                await put(None, "users", [document, {word: word}])
                await _expect(store, lookup(word, f"{word}.{word}"), document)

    async def test_any_name(self) -> None:
        """A collection may have any name that its database allows."""
        async with self.fresh() as (store, put):
            for word in self.names:
                await put(None, word, [{"key": word}])
                await _expect(store, lookup(word, collection=word), {"key": word})
                await store.index(lookup(collection=word))

    async def test_documents_are_returned_whole(self) -> None:
        """A document is returned whole, with its JSON values unchanged."""
        async with self.fresh() as (store, put):
            await put(None, "users", [EVERYTHING])
            await _expect(store, lookup("all"), EVERYTHING)

    async def test_hostile_names(self) -> None:
        """A hostile name finds nothing, or is rejected."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x", "secret": 1}])
            for name in HOSTILE:
                for wanted in (
                    *(lookup(name), lookup(collection=name), lookup(database=name)),
                    *(lookup(tenant=name, collection="nobody"), lookup(name, collection=name)),
                ):
                    assert await _found_or_refused(store, wanted) is None
            await _expect(store, lookup(), {"key": "x", "secret": 1})

    async def test_invalid_keys(self) -> None:
        """An invalid key is rejected."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x"}])
            for key in BAD_KEYS:
                with refused(UsageError):
                    await store.newest(lookup(key=key))
                with refused(UsageError):
                    await store.index(lookup(key=key))

    async def test_a_large_document(self) -> None:
        """A document of several megabytes is found, also by its last field."""
        document = {"lines": [f"line {n} " + "ü" * 100 for n in range(20_000)], "key": "x"}
        async with self.fresh() as (store, put):
            await put(None, "users", [document, {"key": "y"}])
            await _expect(store, lookup(), document)

    async def test_a_large_collection(self) -> None:
        """The newest of ten thousand documents is found, with and without an index."""
        async with self.fresh() as (store, put):
            documents = [{"key": f"k{n % 5000}", "a": {"b": str(n)}, "n": n} for n in range(10_000)]
            await put(None, "users", documents)
            for _ in range(2):
                await _expect(store, lookup("k7"), documents[5007])
                await _expect(store, lookup("7", "a.b"), documents[7])
                await store.index(lookup())
                await store.index(lookup(key="a.b"))
            await put(None, "users", [{"key": "k7", "n": 0}, {"key": "long" * 5000}])
            await _expect(store, lookup("k7"), {"key": "k7", "n": 0})
            await _expect(store, lookup("long" * 5000), {"key": "long" * 5000})

    async def test_an_index_is_made_once(self) -> None:
        """Concurrent requests for an index succeed, and change no document."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x"}, {"key": ["y"]}, {"other": 1}])
            async with anyio.create_task_group() as tasks:
                for n in range(8):
                    tasks.start_soon(store.index, lookup(str(n)))
                    tasks.start_soon(store.index, lookup(key="a.b_c"))
            await _expect(store, lookup(), {"key": "x"})
            assert await store.index(lookup())

    async def test_an_index_needs_a_collection(self) -> None:
        """Indexing a missing collection returns False and creates nothing."""
        async with self.fresh() as (store, put):
            assert not await store.index(lookup())
            assert not await store.index(lookup(database=OTHER))
            assert await store.newest(lookup()) is None
            await put(None, "users", [{"key": "x"}])
            assert await store.index(lookup())
            await _expect(store, lookup(), {"key": "x"})

    async def test_many_lookups_at_once(self) -> None:
        """Concurrent lookups each get their own result."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": str(n), "n": n} for n in range(100)])
            async with anyio.create_task_group() as tasks:
                for n in range(100):
                    tasks.start_soon(_expect, store, lookup(str(n)), {"key": str(n), "n": n})

    async def test_a_cancelled_lookup_harms_no_other(self) -> None:
        """A cancelled lookup does not affect later ones."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x"}])
            for delay in (0, 0.001, 0.005, 0.02):
                with anyio.move_on_after(delay):
                    async with anyio.create_task_group() as tasks:
                        for _ in range(20):
                            tasks.start_soon(store.newest, lookup())
                with anyio.fail_after(PATIENCE):
                    await _expect(store, lookup(), {"key": "x"})

    async def test_closing(self) -> None:
        """A closed store rejects lookups; closing it again does nothing."""
        async with self.fresh() as (store, put):
            await put(None, "users", [{"key": "x"}])
            await _expect(store, lookup(), {"key": "x"})
            await store.aclose()
            await store.aclose()
            with refused(UsageError):
                await store.newest(lookup())
            with refused(UsageError):
                await store.index(lookup())
        async with self.fresh() as (store, _):
            await store.aclose()


async def _expect(store: DocumentStore, wanted: Lookup, document: Mapping[str, Any]) -> None:
    found = await store.newest(wanted)
    assert found is not None, f"No document found for {wanted}."
    # MongoDB adds its own id to a document.
    assert {name: value for name, value in found.items() if name != "_id"} == document


async def _found_or_refused(store: DocumentStore, wanted: Lookup) -> Mapping[str, Any] | None:
    try:
        return await store.newest(wanted)
    except TurnloomError:
        return None
