from collections.abc import Callable
from typing import Any

from . import Array, ArrayLike

def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[ArrayLike], Any]]: ...
