"""numpy, loaded when first used."""

from typing import Any, TypeAlias

from prism.errors import MissingExtraError

try:
    import numpy as np
except ModuleNotFoundError as _error:
    if _error.name != "numpy":
        raise
    raise MissingExtraError("science", _error.name) from None

Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["Array", "np"]
