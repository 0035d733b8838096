from collections import deque
from collections.abc import Iterable
from typing import Any

class ValidationError(Exception):
    message: str
    instance: Any
    absolute_path: deque[str | int]
    def __init__(self, message: str) -> None: ...

def best_match(errors: Iterable[ValidationError]) -> ValidationError | None: ...
