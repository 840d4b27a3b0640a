"""Libraries of the extra, which are loaded where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from prism.errors import MissingExtraError


def library(name: str) -> Any:
    """Return a module of a library of the extra ``science``; none of them says its types.

    Args:
        name: The module, such as ``statsmodels.tsa.stattools``.

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
        raise MissingExtraError("science", package) from None
