"""The index of a board: numbers that stand for "this reader's, and of that type", and the like.

An artifact is found by terms. A term is the digest of a scope and a fact: the scope says of which
tenant the artifact is and whom it is open to, the fact is its type, its producer, a tag and so on.
A reader looks in its own scopes only, so what is hidden from it costs it nothing. Terms find too
much rather than too little: whatever they find is judged as an artifact afterwards.

The type of an artifact without indexed fields is one term, the type of one with indexed fields is
another. The latter has a term for each indexed field and its value, and one for each other field
that holds a simple value. So a value of a field is found without knowing what is indexed: under the
field and value, and among those of the type in which this field is not indexed.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

from turnloom.board.spec import Artifact, Labelled, Private, Public, Reader, Shared, Tenant
from turnloom.kernel.values import Json

# A kind of fact, and which one.
Key = tuple[str, str]
# A kind of scope, which one, and of which tenant.
Scope = tuple[str, str, str]

EVERYTHING: Key = ("all", "")
# What every tenant looks in.
SHARED: Scope = ("shared", "", "")


@lru_cache(maxsize=65_536)
def term(scope: Scope, fact: Key) -> int:
    """The number of a fact in a scope, in 64 bits with a sign."""
    text = "\0".join((*scope, *fact)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def tagged(type: str, tag: str) -> Key:
    """The fact that something of a type has a tag."""
    return ("tagged", f"{type}\0{tag}")


def typed(type: str) -> tuple[Key, Key]:
    """The facts one of which says that something is of a type: without indexed fields, or with."""
    return ("type", type), ("indexed", type)


def valued(type: str, field: str, values: Iterable[Json]) -> tuple[Key, ...] | None:
    """The facts one of which has everything of a type that has one of these values in a field;
    none if a value is not simple."""
    written = [_simple(value) for value in values]
    if None in written:
        return None
    found = [_field(type, field, each) for each in written if each is not None]
    return (("type", type), ("unindexed", f"{type}\0{field}"), *found)


def terms_of(tenant: str, artifact: Artifact, audience: object) -> tuple[int, ...]:
    """What an artifact of a tenant is found by."""
    facts = _facts(artifact)
    return tuple([term(scope, fact) for scope in _scopes(tenant, audience) for fact in facts])


def terms_of_run(tenant: str, run: str) -> tuple[int, ...]:
    """What all artifacts of a run are found by, among others that have the same number."""
    scopes: tuple[Scope, ...] = (("public", "", tenant), ("restricted", "", tenant), SHARED)
    return tuple(term(scope, ("run", run)) for scope in scopes)


def scopes_of(reader: Reader) -> tuple[Scope, ...]:
    """Where a reader looks; an artifact that it may see is in exactly one of these."""
    tenant = reader.tenant
    public: Scope = ("public", "", tenant)
    if reader.role == "developer":
        return (public, ("restricted", "", tenant), SHARED)
    agent: list[Scope] = [("agent", reader.agent, tenant)] if reader.agent else []
    labels: list[Scope] = [("label", label, tenant) for label in sorted(reader.labels)]
    return (public, *agent, ("tenant", tenant, tenant), *labels, SHARED)


def _scopes(tenant: str, audience: object) -> Sequence[Scope]:
    match audience:
        case Shared():
            return (SHARED,)
        case Public():
            return (("public", "", tenant),)
        case Private(agents=agents):
            named: list[Scope] = [("agent", agent, tenant) for agent in agents]
        case Labelled(labels=labels):
            named = [("label", min(labels), tenant)]  # a reader with all of them has this one
        case Tenant(tenant_id=name):
            named = [("tenant", name, tenant)]
        case _:
            named = []
    return (*named, ("restricted", "", tenant))  # where developers look


def _facts(artifact: Artifact) -> list[Key]:
    facts = [EVERYTHING, ("producer", artifact.produced_by), *_typed(artifact)]
    if artifact.correlation_id is not None:
        facts.append(("correlation", artifact.correlation_id))
    if artifact.run is not None:
        facts.append(("run", artifact.run))
    if artifact.partition is not None:
        facts.append(("partition", artifact.partition))
    for tag in artifact.tags:
        facts += (("tag", tag), tagged(artifact.type, tag))
    return facts


def _typed(artifact: Artifact) -> Iterator[Key]:
    plain, indexed = typed(artifact.type)
    if not artifact.indexed:
        yield plain
        return
    yield indexed
    for field, value in artifact.payload.items():
        written = _simple(value)
        if written is not None and field in artifact.indexed:
            yield _field(artifact.type, field, written)
        elif written is not None:
            yield ("unindexed", f"{artifact.type}\0{field}")


def _field(type: str, field: str, written: str) -> Key:
    return ("field", f"{type}\0{field}\0{written}")


def _simple(value: Json) -> str | None:
    """A text that is the same for JSON values that are equal, as `matching` compares them; none for
    arrays and objects."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return f"text {blake2b(text, digest_size=16).hexdigest()}"
    return None
