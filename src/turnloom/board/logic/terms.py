"""The index of a board: numbers that stand for "this reader's, and of that type", and the like.

An artifact is found by terms. A term is the digest of a scope and a fact: the scope says whom the
artifact is open to, the fact is its type, its producer, a tag and so on. A reader looks in its own
scopes only, so what is hidden from it costs it nothing. Terms find too much rather than too little:
whatever they find is judged as an artifact afterwards.
"""

from collections.abc import Iterator
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


def terms_of(artifact: Artifact, audience: object) -> Iterator[int]:
    """What an artifact is found by."""
    facts = tuple(_facts(artifact))
    for scope in _scopes(audience):
        for fact in facts:
            yield term(scope, fact)


def scopes_of(reader: Reader) -> tuple[Key, ...]:
    """Where a reader looks; an artifact that it may see is in exactly one of these."""
    agent = [("agent", reader.agent)] if reader.agent else []
    tenant = [("tenant", reader.tenant)] if reader.tenant else []
    return (EVERYBODY, *agent, *tenant, *(("label", label) for label in sorted(reader.labels)))


def _scopes(audience: object) -> Iterator[Key]:
    match audience:
        case Public():
            yield EVERYBODY
        case Private(agents=agents):
            yield from (("agent", agent) for agent in agents)
        case Labelled(labels=labels):
            # Whoever has all of them has this one.
            yield ("label", min(labels))
        case Tenant(tenant_id=tenant):
            yield ("tenant", tenant)
        case _:
            return


def _facts(artifact: Artifact) -> Iterator[Key]:
    yield EVERYTHING
    yield ("type", artifact.type)
    yield ("producer", artifact.produced_by)
    for kind, value in (
        ("correlation", artifact.correlation_id),
        ("run", artifact.run),
        ("partition", artifact.partition),
    ):
        if value is not None:
            yield (kind, value)
    for tag in artifact.tags:
        yield ("tag", tag)
        yield tagged(artifact.type, tag)
