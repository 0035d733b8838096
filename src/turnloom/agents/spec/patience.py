"""How long a model is waited for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a model may be silent, and how often it is asked again after trouble that may pass.

    The pauses between requests grow from `pause` on, by chance and at most to `longest_pause`. A
    provider that asks for a pause gets it, unless it is longer than that.
    """

    timeout: float = 120.0
    retries: int = 3
    pause: float = 0.5
    longest_pause: float = 60.0
