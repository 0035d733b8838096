"""Who may see an artifact, and who is looking."""

from collections.abc import Set
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import force_setattr

from turnloom.board.spec.values import Names, instant, name, names
from turnloom.errors import InvalidArtifact
from turnloom.kernel.names import LOCAL


class _Kind(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """What all kinds of visibility share: a tag, and nothing beside what they say."""


class Shared(_Kind, frozen=True, tag="shared"):
    """Everybody may see it, of every tenant. Only the program may publish it, not an agent."""


class Public(_Kind, frozen=True, tag="public"):
    """Everybody of its tenant may see it."""


class Private(_Kind, frozen=True, tag="private"):
    """The agents that are named may see it."""

    agents: Set[str]

    def __post_init__(self) -> None:
        force_setattr(self, "agents", _some(self.agents, "Private.agents"))


class Labelled(_Kind, frozen=True, tag="labelled"):
    """Whoever has all of these labels may see it."""

    labels: Set[str]

    def __post_init__(self) -> None:
        force_setattr(self, "labels", _some(self.labels, "Labelled.labels"))


class Tenant(_Kind, frozen=True, tag="tenant"):
    """Whoever belongs to this tenant may see it."""

    tenant_id: str

    def __post_init__(self) -> None:
        name(self.tenant_id, "Tenant.tenant_id")


class After(_Kind, frozen=True, tag="after"):
    """From an instant on, whoever `then` allows may see it; before, nobody."""

    at: datetime
    then: "Visibility" = Public()

    def __post_init__(self) -> None:
        force_setattr(self, "at", instant(self.at, "After.at"))
        if not is_visibility(self.then):
            raise InvalidArtifact(
                f"After.then is {self.then!r}, which is no visibility. "
                "Give a Shared, Public, Private, Labelled, Tenant or After."
            )


Visibility = Shared | Public | Private | Labelled | Tenant | After

# Who may see what was made of several things: whoever all of these admit. Nothing is everybody of
# the tenant.
Audience = tuple[Visibility, ...]


def is_visibility(value: object) -> bool:
    """Whether a value is one of the kinds of visibility that there are."""
    return isinstance(value, Shared | Public | Private | Labelled | Tenant | After)


def is_shared(visibility: object) -> bool:
    """Whether a visibility reaches other tenants, now or from an instant on."""
    while isinstance(visibility, After):
        visibility = visibility.then
    return isinstance(visibility, Shared)


# A user, like an agent, sees what visibilities allow; a developer sees all of the tenant.
Role = Literal["user", "developer"]


class Reader(msgspec.Struct, frozen=True):
    """Who is looking: an agent, its labels, its tenant and its role, as the program says."""

    agent: str = ""
    labels: Set[str] = frozenset()
    tenant: str = LOCAL
    role: Role = "user"

    def __post_init__(self) -> None:
        if self.role not in ("user", "developer"):
            raise InvalidArtifact(f"Reader.role is {self.role!r}. Use 'user' or 'developer'.")
        force_setattr(self, "labels", names(self.labels, "Reader.labels"))


def _some(values: Set[str], what: str) -> Names:
    found = names(values, what)
    if not found:
        raise InvalidArtifact(f"{what} is empty, so it would say nothing. Name at least one.")
    return found
