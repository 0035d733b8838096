"""Who may see what, in words."""

from turnloom.board.spec import (
    After,
    Audience,
    Labelled,
    Private,
    Public,
    Shared,
    Tenant,
    Visibility,
)
from turnloom.explain.spec.text import moment


def audience(visibilities: Audience) -> str:
    """Who may see what, in words."""
    return " and ".join(map(_admitted, visibilities)) or "everybody"


def _admitted(visibility: Visibility) -> str:
    match visibility:
        case Private(agents=agents):
            return f"the agents {', '.join(sorted(agents))} only"
        case Labelled(labels=labels):
            return f"who has the labels {', '.join(sorted(labels))} only"
        case Tenant(tenant_id=tenant):
            return f"the tenant {tenant} only"
        case After(at=at, then=then):
            return f"{_admitted(then)} from {moment(at)} on"
        case Public():
            return "everybody"
        case Shared():
            return "everybody of every tenant"
