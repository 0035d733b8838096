"""Artifacts together with who took them."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from turnloom.board.spec import Artifact, Consumption, Envelope

_FIELDS = Artifact.__struct_fields__


def enclose(artifacts: Iterable[Artifact], consumptions: Iterable[Consumption]) -> list[Envelope]:
    """Each artifact with its consumptions, the oldest first."""
    taken: defaultdict[str, list[Consumption]] = defaultdict(list)
    for consumption in sorted(consumptions, key=_order):
        taken[consumption.artifact].append(consumption)
    return [_envelope(artifact, taken[artifact.id]) for artifact in artifacts]


def _order(consumption: Consumption) -> tuple[datetime, str, int, str]:
    """What orders the consumptions of one artifact wherever they are kept: time, and where that is
    the same, what tells them apart."""
    return (consumption.at, consumption.run, consumption.turn, consumption.subscription)


def _envelope(artifact: Artifact, consumptions: Iterable[Consumption]) -> Envelope:
    said = {name: getattr(artifact, name) for name in _FIELDS}
    return Envelope(**said, consumptions=tuple(consumptions))
