"""Contract suites as classes: no part of a suite hides a test of another part."""

import inspect
from collections import Counter

import pytest

from turnloom.testing import contracts

SUITES = [each for each in vars(contracts).values() if inspect.isclass(each)]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
def test_the_parts_of_a_suite_have_no_test_name_in_common(suite: type) -> None:
    names = Counter(
        name for part in suite.__mro__ for name in vars(part) if name.startswith("test_")
    )
    assert [name for name, count in names.items() if count > 1] == []
