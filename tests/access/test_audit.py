"""The audit trail: what principals did, and nothing that they said."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.schedules.flows import Report, report
from tests.support.tables import REFUSED, tables_of
from turnloom import Loom
from turnloom.access.logic.tokens import plain_entry
from turnloom.access.spec import AuditEntry
from turnloom.errors import Forbidden, UnknownRun, UsageError
from turnloom.runs.principal import Principal
from turnloom.testing import FakeClock

ADMIN = Principal("acme", "root", "admin")


async def test_what_principals_do_is_recorded() -> None:
    clock = FakeClock()
    async with Loom(store="memory", clock=clock) as app:
        made = await app.as_principal(ADMIN).keys.create("ann", role="developer")
        found = await app.auth.identify(f"Bearer {made.token}")
        view = app.as_principal(found.principal, via=found.name)
        run = await view.start(report, Report(day="a secret"))
        await run.outcome()
        clock.advance(timedelta(hours=1))
        await view.explain.timeline(run.id)
        await run.cancel(reason="another secret")
        with pytest.raises(UnknownRun):
            await view.resume("unknown")
        narrow = app.as_principal(Principal("acme", "bob", "user", ["runs:read"]))
        with pytest.raises(Forbidden):
            await narrow.start(report)
        await app.as_principal(ADMIN).keys.revoke(made.key.id)
        entries = await app.as_principal(ADMIN).audit.list()
        assert [(each.who, each.action, each.what, each.outcome) for each in entries[::-1]] == [
            ("root", "key.created", made.key.id, "done"),
            ("ann", "run.started", run.id, "done"),
            ("ann", "explanation.read", run.id, "done"),
            ("ann", "run.cancelled", run.id, "done"),
            ("ann", "run.resumed", "unknown", "refused"),
            ("bob", "run.started", "", "refused"),
            ("root", "key.revoked", made.key.id, "done"),
        ]
        assert {each.via for each in entries if each.who == "ann"} == {made.key.id}
        assert "secret" not in repr(entries) and made.token not in repr(entries)
        list_of: Any = app.as_principal(ADMIN).audit.list
        assert len(await list_of(who="ann")) == 4
        assert len(await list_of(action="run.started")) == 2
        assert len(await list_of(until=clock.now() - timedelta(minutes=1))) == 2
        assert [each.position for each in await list_of(2, before=4)] == [3, 2]
        with pytest.raises(UsageError):
            await list_of(action="run.strated")
        assert not await app.audit.list()  # the default tenant has done nothing


def test_entries_cannot_forge_lines() -> None:
    entry = AuditEntry(
        "acme",
        "ann\nroot key.created\x1b[2J",
        "run.started",
        "x" * 10_000 + "\u202e",
        at=FakeClock().now(),
        via="\r\0",
    )
    plain = plain_entry(entry)
    for text in (plain.who, plain.what, plain.via):
        assert text.isprintable() and len(text) <= 200
    for wrong in ({"action": "x"}, {"outcome": "x"}):
        with pytest.raises(UsageError):
            plain_entry(AuditEntry(**{**_fields(entry), **wrong}))


def _fields(entry: AuditEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


async def test_a_store_refuses_changes(tmp_path: Path) -> None:
    async with Loom(store=tmp_path / "a.db") as app:
        await app.keys.create("ann")
    for change in ("UPDATE {}audit SET who = 'x'", "DELETE FROM {}audit"):
        with pytest.raises(REFUSED), tables_of(tmp_path / "a.db") as tables:
            tables.execute(change)
