"""Digests of text and chains of digests: stable, and the same on every machine.

A digest makes ids, and ids must not collide even where an attacker looks for it. A fingerprint says
that code or a plan is the very same, for years.
"""

from hashlib import blake2b

# In bytes.
_DIGEST = 16
_FINGERPRINT = 32


def digest(text: str) -> str:
    """The digest of a text, of 128 bits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()


def chain_digest(*parts: str) -> str:
    """The digest of texts in order: equal only if every part and the order are equal."""
    return digest(_joined(parts))


def fingerprint(*parts: str) -> str:
    """As `chain`, of 256 bits."""
    text = _joined(parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_FINGERPRINT).hexdigest()


def _joined(parts: tuple[str, ...]) -> str:
    return "".join([f"{len(part)}:{part}" for part in parts])
