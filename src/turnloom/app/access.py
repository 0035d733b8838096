"""Whose calls are made: those of a principal, or those of the program itself."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import CancelScope

from turnloom.errors import Forbidden, UnknownRun, UsageError
from turnloom.kernel.arguments import as_name, as_string
from turnloom.log.spec import LOCAL, RunKey

if TYPE_CHECKING:
    from turnloom.access.service import AuditTrail
    from turnloom.agents.logic.answers import Answerer
    from turnloom.log.ports import EventLog
    from turnloom.runs.principal import Principal, Scope


@dataclass(slots=True)
class AuditedCall:
    """A call for the audit trail, and what it is about: the id of a run or of a key."""

    what: str


class Access:
    """The tenant, the user and the rights of calls. A principal has its own; the program itself may
    do everything, and names the tenant and the user with each call."""

    def __init__(
        self,
        principal: "Principal | None" = None,
        trail: "Callable[[], AuditTrail | None] | None" = None,
        via: str = "",
    ) -> None:
        self.principal = principal
        self._trail = trail
        self._via = via

    def admin(self, given: str | None, *scopes: "Scope") -> "Principal":
        """The principal of a call that needs scopes; for the program itself, an admin of the
        tenant.

        Raises:
            Forbidden: the principal lacks a scope, or belongs to another tenant.
        """
        from turnloom.runs.principal import Principal

        tenant = self.tenant(given, *scopes)
        return self.principal or Principal(tenant, LOCAL, "admin")

    @asynccontextmanager
    async def noting(self, action: str, what: str, *scopes: "Scope") -> AsyncGenerator[AuditedCall]:
        """Make a call that needs scopes, and add it to the audit trail with its outcome. Calls of
        the program itself are not added, since it may do everything.

        Raises:
            Forbidden: the principal lacks a scope.
        """
        trail = self._trail() if self._trail is not None else None
        note = AuditedCall(what)
        if self.principal is None or trail is None:
            self.need(*scopes)
            yield note
            return
        outcome = "failed"
        try:
            self.need(*scopes)
            yield note
            outcome = "done"
        except (Forbidden, UsageError):
            outcome = "refused"
            raise
        finally:
            with CancelScope(shield=True):
                await trail.record(
                    self.principal, action, note.what, outcome=outcome, via=self._via
                )

    @property
    def user(self) -> str | None:
        """The user whose runs and questions these calls are confined to, if they are."""
        who = self.principal
        return None if who is None or who.sees_all else who.user_id

    @property
    def explains(self) -> bool:
        """Whether these calls may see why runs did what they did."""
        return self.principal is None or self.principal.may("explain")

    def need(self, *scopes: "Scope") -> None:
        """Refuse a call that needs scopes which the principal lacks.

        Raises:
            Forbidden: it lacks one.
        """
        if self.principal is not None:
            for scope in scopes:
                self.principal.need(scope)

    def tenant(self, given: str | None, *scopes: "Scope") -> str:
        """The tenant of a call that needs scopes: the given one, by default the principal's.

        Raises:
            Forbidden: the principal lacks a scope, or belongs to another tenant.
        """
        self.need(*scopes)
        named = None if given is None else as_name(given, "`app_id`")
        if self.principal is None:
            return LOCAL if named is None else named
        if named not in (None, self.principal.app_id):
            raise Forbidden(f"{self.principal} does not belong to tenant {named!r}.")
        return self.principal.app_id

    def key(self, given: str | None, run: str, *scopes: "Scope") -> RunKey:
        """The key of a run, for a call that needs scopes.

        Raises:
            Forbidden: the principal lacks a scope, or belongs to another tenant.
            UsageError: it is not a valid id.
        """
        return RunKey(self.tenant(given, *scopes), as_name(run, "The id of the run"))

    def person(self, given: str | None, what: str = "`user_id`") -> str | None:
        """The person on whose behalf a call is made: the given one, or else the principal.

        Raises:
            Forbidden: the principal is another person.
        """
        named = None if given is None else as_string(given, what)
        if self.principal is None:
            return named
        if named not in (None, self.principal.user_id):
            raise Forbidden(f"{self.principal} cannot act as {named!r}.")
        return self.principal.user_id

    def answerer(self, given: str | None) -> "Answerer | None":
        """The person who answers questions, with the role of the principal.

        Raises:
            Forbidden: the principal is another person.
        """
        from turnloom.agents.logic.answers import Answerer

        who = self.person(given)
        role = "" if self.principal is None else self.principal.role
        return None if who is None else Answerer(who, role)

    async def own(self, log: "EventLog", run: RunKey) -> None:
        """Refuse a run that is not the principal's, as if it did not exist.

        Raises:
            UnknownRun: there is no such run of this user.
        """
        if self.user is None:
            return
        from turnloom.log.service import ends_of

        first, _ = await ends_of(log, run)
        if first.data.user != self.user:
            raise UnknownRun(run.id)


# The program itself.
PROGRAM = Access()
