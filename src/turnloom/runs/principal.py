"""Who makes a call: a person or a program of a tenant, with a role and scopes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from turnloom.errors import Forbidden, UsageError
from turnloom.kernel.arguments import as_name, as_names, as_string
from turnloom.kernel.roles import ROLES, TO_ROLE, Role

Scope: TypeAlias = Literal[
    "runs:read", "runs:write", "explain", "board", "collections", "prune", "keys", "audit"
]

# All scopes.
SCOPES: tuple[Scope, ...] = get_args(Scope)

_CHAT: frozenset[Scope] = frozenset({"runs:read", "runs:write", "board"})
_TENANT: frozenset[Scope] = _CHAT | frozenset[Scope]({"explain", "collections"})

# The scopes of each role. Scopes narrow a role; they never widen it.
ROLE_SCOPES: Mapping[Role, frozenset[Scope]] = {
    "user": _CHAT,
    "developer": _TENANT,
    "admin": frozenset(SCOPES),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """The person or program that makes a call: a user of a tenant (`app_id`), with a role.

    A `user` sees their own chats and the questions put to them. A `developer` sees everything of
    the tenant, secrets masked; an `admin` also manages keys, and removes runs. `scopes` narrow the
    role; by default it has all of its own, as in `ROLE_SCOPES`.

    Raises:
        UsageError: a name is invalid, the role or a scope is unknown, or the role lacks the scope.
    """

    app_id: str
    user_id: str
    role: Role = "user"
    scopes: Collection[Scope] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "app_id", as_name(self.app_id, "`app_id`"))
        object.__setattr__(self, "user_id", as_user(self.user_id, "`user_id`"))
        role = as_string(self.role, "`role`")
        if role not in ROLES:
            raise UsageError(f"Unknown role {role!r}. A role is one of: {', '.join(ROLES)}.")
        object.__setattr__(self, "role", role)
        object.__setattr__(self, "scopes", _scopes(self.role, self.scopes))

    @property
    def sees_all(self) -> bool:
        """Whether it sees everything of its tenant, not only its own chats."""
        return self.role != "user"

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope."""
        return scope in cast("frozenset[Scope]", self.scopes)

    def need(self, scope: Scope) -> None:
        """Refuse a call that needs a scope which it lacks.

        Raises:
            Forbidden: it lacks the scope.
        """
        if not self.may(scope):
            raise Forbidden(f"This needs the scope {scope!r}, which {self} lacks.")

    def __str__(self) -> str:
        return f"{self.role} {self.user_id!r}"


def as_user(value: object, what: str) -> str:
    """The id of a user, which is no role.

    Raises:
        UsageError: it is not a valid id.
    """
    user = as_name(value, what)
    if user.startswith(TO_ROLE):
        raise UsageError(f"{what} is {user!r}, which would be a role. Give the id of a person.")
    return user


def _scopes(role: Role, given: Collection[Scope] | None) -> frozenset[Scope]:
    """The scopes of a principal: all of its role, or some of them."""
    own = ROLE_SCOPES[role]
    if given is None:
        return own
    named = as_names(given, "`scopes`")
    for scope in sorted(named - frozenset[str](SCOPES)):
        raise UsageError(f"Unknown scope {scope!r}. Known scopes: {', '.join(SCOPES)}.")
    for scope in sorted(named - own):
        has = ", ".join(each for each in SCOPES if each in own)
        raise UsageError(f"Role {role!r} has no scope {scope!r} to narrow. It has: {has}.")
    return cast("frozenset[Scope]", named)
