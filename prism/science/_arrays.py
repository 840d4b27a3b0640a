"""Arrays and columns: numpy, loaded when first used, and tables made from dataclasses."""

from dataclasses import fields
from typing import Any, TypeAlias

import polars as pl

from prism.errors import MissingExtraError

try:
    import numpy as np
except ModuleNotFoundError as _error:
    if _error.name != "numpy":
        raise
    raise MissingExtraError("science", _error.name) from None

Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["Array", "columns_of", "np"]

_KINDS = {"int": pl.Int64(), "float": pl.Float64(), "bool": pl.Boolean()}


def columns_of(kind: type) -> dict[str, pl.DataType]:
    """Return a column for each field of a dataclass, as text unless it is a number."""
    # annotations are texts, such as "float | None"
    named = {each.name: str(each.type).partition(" ")[0] for each in fields(kind)}
    return {name: _KINDS.get(text, pl.String()) for name, text in named.items()}
