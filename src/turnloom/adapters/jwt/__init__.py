"""Tokens of an identity provider, verified by PyJWT."""

from turnloom.adapters.jwt.verifier import JwtVerifier

__all__ = ["JwtVerifier"]
