"""Names that the parts of a comparison share."""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypeAlias

MeasureKind: TypeAlias = Literal["own", "run", "state", "cost", "distribution"]
TestName: TypeAlias = Literal["Wilcoxon", "Mann-Whitney", "Kolmogorov-Smirnov"]
Source: TypeAlias = PathLike[str] | str
