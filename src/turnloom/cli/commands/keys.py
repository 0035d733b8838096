"""`turnloom keys`: make, list and revoke API keys."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, cast

import msgspec
import typer
from rich.text import Text

from turnloom.access.spec import ApiKey
from turnloom.app import Loom
from turnloom.cli.command import as_text
from turnloom.cli.stored import Json, StoredRunsCommand
from turnloom.cli.tables import lay_out
from turnloom.cli.terminal import Terminal, joined, safe
from turnloom.cli.times import instant_or_age
from turnloom.explain.spec.text import moment
from turnloom.runs.principal import SCOPES, Scope

SUMMARY = "Make, list and revoke the API keys of a tenant."

_COLUMNS = ("key", "name", "user", "role", "status", "expires", "last use", "scopes")
_WHOLE = ("key", "status")
_STYLES = {"valid": "green", "expired": "yellow", "revoked": "red"}


class KeyRole(StrEnum):
    """The roles of a key."""

    user = "user"
    developer = "developer"
    admin = "admin"


@dataclass(frozen=True, kw_only=True)
class KeysCreateCommand(StoredRunsCommand):
    """Make an API key. Its token is printed this once; the store has only a digest of it."""

    user: Annotated[str, typer.Option(metavar="ID", callback=as_text, help="Whose key it is.")] = (
        "local"
    )
    role: Annotated[KeyRole, typer.Option(help="What it may do.")] = KeyRole.user
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help=f"Narrow the role to this: {', '.join(SCOPES)}; may be repeated.",
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=as_text, help="What it is for; by default the user."),
    ] = None
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Until when it is valid: 90d from now, or ISO 8601."),
    ] = None
    json: Json = False

    def open(self) -> Loom:
        """The app; a store is created if there is none."""
        return Loom(store=self.store)

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Make the key, and print its token."""
        made = await app.keys.create(
            self.user,
            role=self.role.value,
            scopes=cast("list[Scope] | None", self.scope),
            name=self.name,
            expires=instant_or_age(self.expires, "--expires"),
            app_id=self.app_id,
        )
        if self.json:
            terminal.emit(msgspec.json.encode({"key": made.key, "token": made.token}))
            return 0
        terminal.show(safe(made.token))
        said = (
            f"Key {made.key.id} of {made.key.role} {made.key.user!r}. Its token is not shown again."
        )
        terminal.tell(safe(said))
        return 0


@dataclass(frozen=True, kw_only=True)
class KeysListCommand(StoredRunsCommand):
    """List the API keys of a tenant, the latest first, also expired and revoked ones."""

    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50
    before: Annotated[
        str | None, typer.Option(metavar="KEY", help="Those made before this key: the next page.")
    ] = None
    json: Json = False

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Print the list."""
        found = await app.keys.list(self.limit, before=self.before, app_id=self.app_id)
        if self.json:
            terminal.emit(msgspec.json.encode(found))
            return 0
        if not found:
            none = f"App {self.app_id!r} has no keys. `turnloom keys create` makes one."
            terminal.tell(safe(none))
            return 0
        now = app.keys.now()

        def cells(key: ApiKey) -> tuple[str | Text, ...]:
            status = key.status(now)
            return (
                safe(key.id, "bold"),
                key.name,
                key.user,
                key.role,
                safe(status, _STYLES[status]),
                moment(key.expires) if key.expires else "never",
                moment(key.last_used) if key.last_used else "never",
                " ".join(key.scopes),
            )

        for part in lay_out(_COLUMNS, found, cells, terminal.out.width, whole=_WHOLE):
            terminal.show(part)
        return 0


@dataclass(frozen=True, kw_only=True)
class KeysRevokeCommand(StoredRunsCommand):
    """Revoke an API key for good. Requests that use it are refused from then on."""

    key: Annotated[str, typer.Argument(metavar="KEY", help="The id of a key, as `list` shows it.")]

    async def act(self, app: Loom, terminal: Terminal) -> int:
        """Revoke the key."""
        revoked = await app.keys.revoke(self.key, app_id=self.app_id)
        terminal.show(joined("Key ", (revoked.id, "bold"), " is revoked."))
        return 0
