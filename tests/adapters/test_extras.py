"""An adapter whose package is missing says which extra has it."""

import pytest

from tests.support.missing import refused_without


@pytest.mark.parametrize(
    ("package", "adapter", "extra"),
    [
        ("jwt", "turnloom.adapters.jwt", "turnloom[server]"),
        ("cronsim", "turnloom.adapters.cronsim", "turnloom[server]"),
        ("procrastinate", "turnloom.adapters.procrastinate", "turnloom[workers]"),
        ("fastapi", "turnloom.server", "turnloom[server]"),
    ],
)
def test_the_extra_is_named(package: str, adapter: str, extra: str) -> None:
    assert extra in str(refused_without(package, adapter))
