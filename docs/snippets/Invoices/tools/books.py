"""The books: what is owed, and what was paid."""

from dataclasses import dataclass
from typing import Literal

from turnloom import Context

RATES = {"USD": 0.9, "GBP": 1.2}


@dataclass
class Line:
    what: str
    count: int
    price: float


def enter(vendor: str, lines: list[Line], context_variables: Context) -> float:
    """Enter an invoice into the books."""
    owed = sum(line.count * line.price for line in lines)
    context_variables["vendor"] = vendor
    context_variables["owed"] = owed
    return owed


def rate(currency: Literal["USD", "GBP"]) -> float:
    """What one unit of a currency is worth in euros."""
    return RATES[currency]


async def pay(euros: float, day: str, context: Context) -> str:
    """Pay the invoice in the books."""

    def transfer() -> str:
        # Your bank: it takes the key, so that a repeated order is not a second one.
        return f"{context['vendor']} gets {euros:.2f} EUR on {day}"

    receipt = await context.once("transfer", transfer)
    context.set("paid", True)
    return f"{receipt}, order {context.idempotency_key}"
