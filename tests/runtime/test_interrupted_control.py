"""Control operations interrupted at every await: nothing hangs, and no claim is left."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.interruptions import OPERATIONS, Scene, sweep

FORMS = ["flow", "conversation", "board"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", ["flow", "board"])
async def test_an_operation_that_is_interrupted_leaves_a_run_to_others(
    form: str, operation: str, tmp_path: Path
) -> None:
    await sweep(partial(Scene, "sqlite", form), operation, tmp_path, [(0,), (2,)])


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_that_is_interrupted_twice_leaves_a_run_to_others(
    operation: str, tmp_path: Path
) -> None:
    await sweep(partial(Scene, "sqlite", "flow"), operation, tmp_path, [(0, 0), (0, 1), (1, 2)])


@pytest.mark.doors
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_operations_interrupted_at_every_await(
    kind: str, form: str, operation: str, tmp_path: Path
) -> None:
    cuts = [(n,) for n in range(200)]
    assert await sweep(partial(Scene, kind, form), operation, tmp_path, cuts)


@pytest.mark.doors
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", FORMS)
async def test_operations_interrupted_twice_in_a_row(
    form: str, operation: str, tmp_path: Path
) -> None:
    cuts = [(n, n + gap) for n in range(200) for gap in range(4)]
    assert await sweep(partial(Scene, "sqlite", form), operation, tmp_path, cuts)
