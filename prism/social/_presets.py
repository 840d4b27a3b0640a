"""Presets: parameters of the feed that are calibrated to published figures, with sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prism.errors import FieldValueError

DEFAULT_PRESET = "conversation"
"""The default preset, in which people answer each other even if there are few of them."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Named parameters.

    Args:
        name: The name.
        about: The figures to which it is calibrated, their source, and what it does not reproduce.
        values: The parameters that differ from the defaults, which are ``conversation``.
    """

    name: str
    about: str
    values: Mapping[str, Any] = field(default_factory=dict)


def _presets_in(file: Path) -> dict[str, Preset]:
    return {
        name: Preset(
            name,
            " ".join(table["about"].split()),
            {**table.get("values", {}), **dict.fromkeys(table.get("none", ()))},
        )
        for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items()
    }


PRESETS: Mapping[str, Preset] = _presets_in(Path(__file__).with_name("presets.toml"))
"""All presets by their names."""


def preset_named(name: str) -> Preset:
    """Return the preset with a name.

    Raises:
        FieldValueError: If there is no such preset.
    """
    if name not in PRESETS:
        raise FieldValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")

    return PRESETS[name]
