"""The index of a board: numbers that stand for "this reader's, and of that type", and the like.

An artifact is found by terms. A term is the digest of a scope and a fact: the scope says whom the
artifact is open to, the fact is its type, its producer, a tag and so on. A reader looks in its own
scopes only, so what is hidden from it costs it nothing. Terms find too much rather than too little:
whatever they find is judged as an artifact afterwards.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from turnloom.board.spec import Artifact, Labelled, Private, Public, Reader, Tenant

# A kind of fact, or of scope, and which one.
Key = tuple[str, str]

EVERYTHING: Key = ("all", "")
EVERYBODY: Key = ("public", "")


@lru_cache(maxsize=65_536)
def term(scope: Key, fact: Key) -> int:
    """The number of a fact in a scope, in 64 bits with a sign."""
    text = "\0".join((*scope, *fact)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def tagged(type: str, tag: str) -> Key:
    """The fact that something of a type has a tag."""
    return ("tagged", f"{type}\0{tag}")


def terms_of(artifact: Artifact, audience: object) -> tuple[int, ...]:
    """What an artifact is found by."""
    facts = _facts(artifact)
    return tuple([term(scope, fact) for scope in _scopes(audience) for fact in facts])


def scopes_of(reader: Reader) -> tuple[Key, ...]:
    """Where a reader looks; an artifact that it may see is in exactly one of these."""
    agent = [("agent", reader.agent)] if reader.agent else []
    tenant = [("tenant", reader.tenant)] if reader.tenant else []
    return (EVERYBODY, *agent, *tenant, *(("label", label) for label in sorted(reader.labels)))


def _scopes(audience: object) -> Sequence[Key]:
    match audience:
        case Public():
            return (EVERYBODY,)
        case Private(agents=agents):
            return [("agent", agent) for agent in agents]
        case Labelled(labels=labels):
            return (("label", min(labels)),)  # a reader with all of them has this one
        case Tenant(tenant_id=tenant):
            return (("tenant", tenant),)
        case _:
            return ()


def _facts(artifact: Artifact) -> list[Key]:
    facts = [EVERYTHING, ("type", artifact.type), ("producer", artifact.produced_by)]
    if artifact.correlation_id is not None:
        facts.append(("correlation", artifact.correlation_id))
    if artifact.run is not None:
        facts.append(("run", artifact.run))
    if artifact.partition is not None:
        facts.append(("partition", artifact.partition))
    for tag in artifact.tags:
        facts += (("tag", tag), tagged(artifact.type, tag))
    return facts
