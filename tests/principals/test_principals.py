"""Principals: their roles and scopes, and the app as they see it."""

from typing import Any, cast

import pytest

from tests.flow.scenes import Work, note
from tests.support.hostile import hostile
from turnloom import Flow, Forbidden, Loom, Principal
from turnloom.errors import UsageError
from turnloom.runs.principal import ROLE_SCOPES, ROLES, SCOPES


def test_a_principal_has_the_scopes_of_its_role() -> None:
    for role in ROLES:
        principal = Principal("acme", "ann", role)
        assert {scope for scope in SCOPES if principal.may(scope)} == ROLE_SCOPES[role]
    assert ROLE_SCOPES["user"] < ROLE_SCOPES["developer"] < ROLE_SCOPES["admin"]
    narrow = Principal("acme", "ann", "developer", ["runs:read"])
    assert narrow.may("runs:read") and not narrow.may("explain")
    with pytest.raises(Forbidden) as refused:
        narrow.need("explain")
    assert refused.value.code == "TURNLOOM-FORBIDDEN"


@pytest.mark.parametrize(
    "given",
    [
        ("", "ann"),
        ("acme", ""),
        (1, "ann"),
        ("acme", "a\0b"),
        ("acme", "ann", "root"),
        ("acme", "ann", "user", ["everything"]),
        ("acme", "ann", "user", ["explain"]),
        ("acme", "ann", "user", "runs:read"),
        ("acme", "ann", "user", [1]),
        ("acme", "ann", "user", 5),
    ],
)
def test_what_is_no_principal_is_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError):
        Principal(*given)


async def test_only_a_principal_has_a_view() -> None:
    async with Loom(store="memory") as app:
        for wrong in (None, "ann", ("acme", "ann")):
            with pytest.raises(UsageError):
                app.as_principal(cast(Any, wrong))
        assert await app.as_principal(Principal("acme", "ann")).runs() == []


@pytest.mark.parametrize("value", hostile().values(), ids=hostile())
def test_hostile_arguments_are_refused(value: Any) -> None:
    for place in range(4):
        given: list[Any] = ["acme", "ann", "user", None]
        given[place] = value
        try:
            assert repr(Principal(*given))
        except UsageError as error:
            assert error.code


async def test_why_a_run_failed_is_for_those_who_may_explain_it() -> None:
    def fail(state: Work) -> None:
        raise ValueError("no stock of lamps")

    flow = Flow("work", Work).start_with(fail).finally_(note("end"))
    async with Loom(store="memory") as app:
        run = await app.start(flow, user_id="ann", app_id="acme")
        await run.finished()
        for role, reason in (("user", ""), ("developer", "no stock of lamps")):
            view = app.as_principal(Principal("acme", "ann", role))
            (listed,) = await view.runs()
            assert (listed.status, reason in listed.reason) == ("failed", True)
            assert bool(listed.reason) == bool(reason)
            assert await view.handle(run.id).summary() == listed
            assert len(await view.runs(find="lamps")) == bool(reason)


async def test_why_a_run_was_cancelled_is_for_them_too() -> None:
    flow = Flow("work", Work).start_with(note("a")).await_approval("ann").finally_(note("b"))
    async with Loom(store="memory") as app:
        run = await app.start(flow)
        await run.outcome()
        await run.cancel(reason="not needed any more")
        for role, reason in (("user", ""), ("developer", "not needed any more")):
            view = app.as_principal(Principal(run.app_id, "local", role))
            (listed,) = await view.runs()
            assert (listed.status, listed.reason) == ("cancelled", reason)
            assert len(await view.runs(find="needed")) == bool(reason)
