"""The roles of people."""

from typing import Literal, TypeAlias, get_args

Role: TypeAlias = Literal["user", "developer", "admin"]

# The roles, the one that may do least first.
ROLES: tuple[Role, ...] = get_args(Role)

# Begins an addressee that is a role and not a person.
TO_ROLE = "role:"
