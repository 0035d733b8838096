"""Draws from Beta distributions that are the same on every machine.

Logarithms and powers of floats differ in their last digit from one C library to another; those of
decimals are rounded correctly everywhere. Everything else here is arithmetic that IEEE 754 defines.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from hashlib import blake2b
from math import sqrt

_EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)

# How many hexadecimal digits of a digest make a number: 52 bits, so that a half can be added.
_DIGITS = 13
_RANGE = 16**_DIGITS


class Stream:
    """Numbers between 0 and 1, both excluded, that follow from the names it is given."""

    def __init__(self, *names: str) -> None:
        self._name = _mix("".join([f"{len(name)}:{name}" for name in names]))
        self._count = 0

    def next(self) -> float:
        """The next number, each as likely as the others."""
        self._count += 1
        drawn = _mix(f"{self._name}/{self._count}")[:_DIGITS]
        return (int(drawn, 16) + 0.5) / _RANGE


def _mix(text: str) -> str:
    """Hexadecimal digits that follow from a text; never other ones, or seeds would draw anew."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def draw_beta(alpha: float, beta: float, stream: Stream) -> float:
    """A draw from a Beta distribution; a half where both its parts are too small to be told."""
    one, other = _gamma(alpha, stream), _gamma(beta, stream)
    total = one + other
    return one / total if total > 0 else 0.5


def _gamma(shape: float, stream: Stream) -> float:
    """A draw from a Gamma distribution, as Marsaglia and Tsang do it."""
    if shape < 1:
        return _gamma(shape + 1, stream) * _exp(_ln(stream.next()) / shape)
    d = shape - 1 / 3
    c = 1 / sqrt(9 * d)
    while True:
        x = _normal(stream)
        v = 1 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = stream.next()
        if u < 1 - 0.0331 * x * x * x * x or _ln(u) < x * x / 2 + d * (1 - v + _ln(v)):
            return d * v


def _normal(stream: Stream) -> float:
    """A draw from the normal distribution, by the polar method."""
    while True:
        a, b = 2 * stream.next() - 1, 2 * stream.next() - 1
        s = a * a + b * b
        if 0 < s < 1:
            return a * sqrt(-2 * _ln(s) / s)


def _ln(value: float) -> float:
    return float(_EXACT.ln(Decimal(value)))


def _exp(value: float) -> float:
    return float(_EXACT.exp(Decimal(value)))
