from collections.abc import Callable
from os import PathLike

_Path = str | PathLike[str]

def pull(
    name: str,
    *,
    verify: bool = False,
    retries: int = 8,
    note: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> str: ...
def cached(name: str) -> str | None: ...
def find(
    path: _Path,
    *,
    note: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> _Path: ...
