"""Digests of text and chains of digests: stable, and the same on every machine.

Ids are digests, and must not collide even when an attacker tries. A fingerprint identifies code or
a plan over years.
"""

from hashlib import blake2b

# In bytes.
_DIGEST = 16
_FINGERPRINT = 32


def digest(text: str) -> str:
    """The 128-bit digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()


def chain_digest(*parts: str) -> str:
    """The digest of texts in order: equal only if every part and the order are equal."""
    return digest(_joined(parts))


def fingerprint(*parts: str) -> str:
    """As `chain_digest`, with 256 bits."""
    text = _joined(parts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_FINGERPRINT).hexdigest()


def _joined(parts: tuple[str, ...]) -> str:
    return "".join([f"{len(part)}:{part}" for part in parts])
