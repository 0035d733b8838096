"""Cycles in a graph of names."""

from collections.abc import Iterable, Iterator, Mapping


def cycle_of(follows: Mapping[str, Iterable[str]]) -> list[str]:
    """A cycle, from a name back to itself; empty if there is none."""
    done: set[str] = set()
    for start in follows:
        if start not in done and (found := _walk(start, follows, done)):
            return found
    return []


def _walk(start: str, follows: Mapping[str, Iterable[str]], done: set[str]) -> list[str]:
    """A cycle reachable from a name; names that reach none are added to `done`."""
    trail: dict[str, Iterator[str]] = {start: iter(follows.get(start, ()))}
    while trail:
        name, others = next(reversed(trail.items()))
        other = next(others, None)
        if other is None:
            del trail[name]
            done.add(name)
        elif other in trail:
            names = list(trail)
            return [*names[names.index(other) :], other]
        elif other not in done:
            trail[other] = iter(follows.get(other, ()))
    return []
