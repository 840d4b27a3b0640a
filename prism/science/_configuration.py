"""One point of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prism.science._plan_schema import VARIED_SETTINGS


@dataclass(frozen=True, slots=True)
class Configuration:
    """One point of a plan: its parameters in one arm. A run is a configuration and a seed.

    Args:
        name: What it is called in tables and folders.
        arm: The arm; None in a plan without arms.
        parameters: The parameters, those of the plan and the arm included.
        settings: What else the plan and the arm say, with the keys of a plan.
    """

    name: str
    arm: str | None
    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]


def kind_of(configuration: Configuration) -> str:
    """Return what configurations have in common that differ in parameters of the world alone."""
    varied = [configuration.settings.get(name) for name in VARIED_SETTINGS]
    return repr((configuration.arm, varied))
