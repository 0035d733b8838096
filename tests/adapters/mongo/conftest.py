"""What PyMongo leaves behind.

When its client is closed while it is connecting, it forgets the socket, and the garbage collector
warns of it in whatever test comes next.
"""

import gc
import warnings
from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True)
def forgotten_sockets() -> Generator[None, None, None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
