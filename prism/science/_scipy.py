"""The statistics libraries that calibration uses, loaded where they are needed."""

from __future__ import annotations

from typing import Any

from prism.errors import MissingExtraError


def scipy_stats() -> Any:
    """Return ``scipy.stats``.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        from scipy import stats  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ModuleNotFoundError:
        raise MissingExtraError("science", "scipy") from None

    return stats


def linprog() -> Any:
    """Return scipy's solver of linear programs."""
    scipy_stats()
    from scipy import optimize

    return optimize.linprog


def multinomial_logit() -> Any:
    """Return the class of multinomial logits of statsmodels.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        from statsmodels.discrete import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            discrete_model,
        )
    except ModuleNotFoundError:
        raise MissingExtraError("science", "statsmodels") from None

    return discrete_model.MNLogit
