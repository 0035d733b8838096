"""Tokens of an identity provider, verified by PyJWT. Needs the extra `server`."""

from turnloom.errors import UsageError

try:
    from turnloom.adapters.jwt.verifier import JwtVerifier
except ModuleNotFoundError as error:
    if error.name not in ("jwt", "cryptography"):
        raise
    raise UsageError(
        f"`[auth.jwt]` needs the package {error.name!r}, which is not installed. "
        'Install it with: pip install "turnloom[server]"'
    ) from error

__all__ = ["JwtVerifier"]
