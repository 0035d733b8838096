"""API keys: who gets in with them, and who does not."""

import asyncio
import hmac
import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.tables import content_of
from turnloom import Loom
from turnloom.access.logic.tokens import NO_DIGEST, admits, digest_of
from turnloom.access.service import Authenticator, KeyRing
from turnloom.access.spec import MOST_CREDENTIAL
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import Forbidden, NotAuthenticated, StoreUnavailable, UsageError
from turnloom.ports import codec
from turnloom.runs.principal import Principal
from turnloom.testing import FakeClock

ADMIN = Principal("acme", "root", "admin")


def app_on(store: Any, clock: FakeClock) -> Loom:
    return Loom(store=store, clock=clock)


async def refused(app: Loom, header: str | None) -> str:
    with pytest.raises(NotAuthenticated) as error:
        await app.auth.authenticate(header)
    return str(error.value)


async def test_a_key_stands_for_its_owner() -> None:
    clock = FakeClock()
    async with app_on("memory", clock) as app:
        assert not await app.auth.is_set_up()
        view = app.as_principal(ADMIN)
        made = await view.keys.create("ann", role="developer", scopes=["explain"], expires="1d")
        assert await app.auth.is_set_up()
        found = await app.auth.identify(f"bearer  {made.token} ")
        assert found.principal == Principal("acme", "ann", "developer", ["explain"])
        assert found.name == made.key.id
        assert made.token not in repr(made) + repr(await app.keys.list(app_id="acme"))
        assert [key.id for key in await view.keys.list()] == [made.key.id]
        assert not await app.keys.list()  # of the default tenant


async def test_all_refusals_are_one() -> None:
    clock = FakeClock()
    async with app_on("memory", clock) as app:
        make = app.as_principal(ADMIN).keys.create
        expired, revoked, good = await make("a", expires="1h"), await make("b"), await make("c")
        await app.as_principal(ADMIN).keys.revoke(revoked.key.id)
        clock.advance(timedelta(hours=1))
        swapped = good.token.replace(good.key.id, revoked.key.id)
        headers = [
            None,
            "",
            "Bearer",
            "Bearer ",
            good.token,
            f"Basic {good.token}",
            f"Bearer {expired.token}",
            f"Bearer {revoked.token}",
            f"Bearer {swapped}",
            f"Bearer {good.token}x",
            f"Bearer {good.token[:-1]}",
            f"Bearer {good.token.upper()}",
            f"Bearer {good.token}\n",
            f"Bearer {good.token}\0",
            f"Bearer tlk_{good.key.id}_",
            f"Bearer tlk_{good.key.id}",
            "Bearer tlk__",
            f"Bearer tlk_{'9' * 26}_{'a' * 52}",
            f"Bearer {'é' * 50}",
            "Bearer tlk_" + "a" * MOST_CREDENTIAL,
            "Bearer " + "a." * 10**6,
            f"Bearer {digest_of(good.token)}",
        ]
        texts = {await refused(app, each) for each in headers if each != f"Bearer {good.token}\n"}
        assert len(texts) == 1
        assert (await app.auth.authenticate(f"Bearer {good.token}")).user_id == "c"


def test_digests_are_always_compared() -> None:
    """The default comparison takes constant time; that of a missing key is as long."""
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    assert inspect.signature(admits).parameters["compare"].default is hmac.compare_digest
    assert not admits(None, "tlk_a_b", FakeClock().now(), compare)
    assert compared == [(len(NO_DIGEST), len(NO_DIGEST))]


async def test_the_store_has_no_secret(tmp_path: Path) -> None:
    async with Loom(store=tmp_path / "turnloom.db") as app:
        made = await app.keys.create("ann", name="laptop")
        assert (await app.auth.authenticate(f"Bearer {made.token}")).user_id == "ann"
        secret = made.token.rpartition("_")[2]
    kept = content_of(tmp_path)
    assert b"laptop" in kept and secret.encode() not in kept


async def test_names_and_roles_are_checked() -> None:
    async with app_on("memory", FakeClock()) as app:
        create: Any = app.keys.create
        for wrong in (
            {"user_id": "a\x1b[2J"},
            {"user_id": "a\nb"},
            {"user_id": ""},
            {"user_id": "a", "name": "x" * 201},
            {"user_id": "a", "name": "a\u202eb"},
            {"user_id": "a", "role": "root"},
            {"user_id": "a", "role": "user", "scopes": ["keys"]},
            {"user_id": "a", "scopes": ["nothing"]},
            {"user_id": "a", "expires": "0d"},
            {"user_id": "a", "expires": "soon"},
        ):
            with pytest.raises(UsageError):
                await create(**wrong)
        assert not await app.keys.list()
        with pytest.raises(UsageError):
            await app.keys.revoke("unknown")


@pytest.mark.parametrize("role", ["user", "developer"])
async def test_only_admins_manage_keys_and_read_the_audit_trail(role: Any) -> None:
    async with app_on("memory", FakeClock()) as app:
        view = app.as_principal(Principal("acme", "ann", role))
        for call in (view.keys.create("ann"), view.keys.list(), view.keys.revoke("a")):
            with pytest.raises(Forbidden):
                await call
        with pytest.raises(Forbidden):
            await view.audit.list()
        narrow = app.as_principal(Principal("acme", "root", "admin", ["audit"]))
        with pytest.raises(Forbidden):
            await narrow.keys.list()
        assert not await narrow.audit.list()


async def test_an_admin_reaches_its_own_tenant_only() -> None:
    async with app_on("memory", FakeClock()) as app:
        made = await app.as_principal(ADMIN).keys.create("ann")
        other = app.as_principal(Principal("globex", "root", "admin"))
        with pytest.raises(UsageError):
            await other.keys.revoke(made.key.id)
        assert not await other.keys.list() and not await other.audit.list()
        with pytest.raises(Forbidden):
            await other.keys.create("ann", app_id="acme")
        assert (await app.auth.authenticate(f"Bearer {made.token}")).app_id == "acme"


class CountingKeys:
    """Keys that count notes of their use."""

    def __init__(self, store: MemoryStore) -> None:
        self.lookup = store.keys.lookup
        self.any = store.keys.any
        self.touched = 0

    async def touch(self, *use: Any) -> None:
        self.touched += 1
        raise StoreUnavailable("full")


async def test_the_last_use_is_noted_once_a_minute_and_never_locks_out() -> None:
    clock, store = FakeClock(), MemoryStore(codec())
    ring = KeyRing(store.keys, None, clock, iter(("id", "a", "b")).__next__)
    made = await ring.create(ADMIN, Principal("acme", "ann"), name="ann")
    counting: Any = CountingKeys(store)
    authenticator = Authenticator(counting, None, clock)
    for _ in range(5):
        await authenticator.authenticate(f"Bearer {made.token}")
        clock.advance(timedelta(seconds=20))
    assert counting.touched == 2


async def test_a_taken_id_is_drawn_again() -> None:
    store, drawn = MemoryStore(codec()), iter(("a", "1", "2", "a", "1", "2", "b", "1", "2"))
    ring = KeyRing(store.keys, None, FakeClock(), drawn.__next__)
    ann = Principal("acme", "ann")
    first = await ring.create(ADMIN, ann, name="one")
    second = await ring.create(ADMIN, ann, name="two")
    assert (first.key.id, second.key.id) == ("a", "b")


async def test_making_and_revoking_at_once(tmp_path: Path) -> None:
    async with Loom(store=tmp_path / "a.db") as one, Loom(store=tmp_path / "a.db") as two:
        apps = (one, two)
        made = await asyncio.gather(*(app.keys.create(f"u{n}") for n in range(5) for app in apps))
        assert len({each.key.id for each in made}) == 10
        await asyncio.gather(*(app.keys.revoke(each.key.id) for each in made for app in apps))
        for each in made:
            await refused(two, f"Bearer {each.token}")
        entries = await one.audit.list(100)
        assert [each.position for each in entries] == [*range(30, 0, -1)]
