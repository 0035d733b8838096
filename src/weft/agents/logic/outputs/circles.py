"""Models that no value can ever fit, because they hold themselves without an end."""

from collections.abc import Mapping, Set

from weft.agents.spec.outputs import Either, Form, Record, Reference
from weft.variables.logic.cycles import cycle_of


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
    finished: set[str] = set()
    while more := {name for name in forms if name not in finished and _ends(forms[name], finished)}:
        finished |= more
    return {name: _needs(form) - finished for name, form in forms.items() if name not in finished}


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
