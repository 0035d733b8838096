"""The cost of model calls."""

import msgspec


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """What model calls cost, by the prices of today's settings, in US dollars.

    `unpriced` are the models of calls without a price or without a reported usage: then `dollars`
    is the cost of the others at least, and None if none is known to cost anything.
    """

    dollars: float | None = None
    unpriced: tuple[str, ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        unpriced = tuple(dict.fromkeys((*self.unpriced, *other.unpriced)))
        total = (self.dollars or 0.0) + (other.dollars or 0.0)
        return Cost(None if unpriced and not total else total, unpriced)

    def __str__(self) -> str:
        if self.dollars is None:
            return "unknown"
        return f"{'at least ' if self.unpriced else ''}{dollars(self.dollars)}"

    @property
    def sentence(self) -> str:
        """The cost, and the models without a price."""
        return f"{self}, no price for {', '.join(self.unpriced)}" if self.unpriced else str(self)


def dollars(amount: float) -> str:
    """An amount as `$1.25`; small ones with two digits that say something, as `$0.00042`."""
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.{max(2, 1 - _exponent(amount))}f}"


def _exponent(amount: float) -> int:
    return int(f"{amount:e}".split("e")[1])
