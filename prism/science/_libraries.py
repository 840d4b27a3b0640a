"""Libraries of the extra, which are loaded where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from prism.errors import MissingExtraError


def library(name: str, extra: str = "science") -> Any:
    """Return a module of a library of an extra; none of them says its types.

    Args:
        name: The module, such as ``statsmodels.tsa.stattools``.
        extra: The extra that brings it.

    Raises:
        MissingExtraError: If the library is not installed.
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # another module that is missing is another fault
        if error.name != package:
            raise
        raise MissingExtraError("science", package, extra=extra) from None
