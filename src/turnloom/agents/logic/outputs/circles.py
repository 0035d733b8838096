"""Models that hold themselves without an end, or each other more deeply than can be built."""

from collections.abc import Iterable, Mapping, Set

from turnloom.agents.spec.outputs import ArrayOf, Either, Form, MapOf, Record, Reference
from turnloom.variables.logic.cycles import cycle_of

# Well below what Python's stack holds of pydantic's.
MAX_LEVELS = 32


def endless(forms: Mapping[str, Form]) -> list[str]:
    """Models that need each other in a circle, from a name back to itself, or nothing."""
    variants = {name: _variants(form) for name, form in forms.items()}
    return cycle_of(variants) or cycle_of(_unfinished(forms))


def _variants(form: Form) -> set[str]:
    """The models that a value of a form may be as a whole."""
    match form:
        case Reference(model=model):
            return {model}
        case Either(variants=variants):
            return set[str]().union(*map(_variants, variants))
        case _:
            return set()


def _unfinished(forms: Mapping[str, Form]) -> dict[str, set[str]]:
    """Models without a smallest value, and those of them that each needs."""
    needs = {name: _needs(form) for name, form in forms.items()}
    needed_by: dict[str, list[str]] = {name: [] for name in forms}
    for name, others in needs.items():
        for other in others:
            needed_by[other].append(name)
    finished: set[str] = set()
    waiting = list(forms)
    while waiting:
        name = waiting.pop()
        if name not in finished and _ends(forms[name], finished):
            finished.add(name)
            waiting += needed_by[name]
    return {name: others - finished for name, others in needs.items() if name not in finished}


def _ends(form: Form, finished: Set[str]) -> bool:
    match form:
        case Reference(model=model):
            return model in finished
        case Either(variants=variants):
            return any(_ends(each, finished) for each in variants)
        case Record(keys=keys):
            return all(_ends(key.form, finished) for key in keys.values() if key.required)
        case _:
            return True


def _needs(form: Form) -> set[str]:
    match form:
        case Record(keys=keys):
            needed = (_needs(key.form) for key in keys.values() if key.required)
            return set[str]().union(*needed)
        case Either(variants=variants):
            return set[str]().union(*map(_needs, variants))
        case _:
            return _variants(form)


def too_deep(forms: Mapping[str, Form]) -> str | None:
    """A model from which others are reached through more levels than can be built at once."""
    return next((name for name in forms if _is_deep(forms[name], forms, {name}, MAX_LEVELS)), None)


def _is_deep(form: Form, forms: Mapping[str, Form], met: set[str], levels: int) -> bool:
    if isinstance(form, Reference):
        if form.model in met:
            return False
        met.add(form.model)
        form = forms[form.model]
    return levels == 0 or any(_is_deep(part, forms, met, levels - 1) for part in _parts(form))


def _parts(form: Form) -> Iterable[Form]:
    match form:
        case ArrayOf(item=part) | MapOf(value=part):
            return (part,)
        case Either(variants=variants):
            return variants
        case Record(keys=keys):
            return [key.form for key in keys.values()]
        case _:
            return ()
