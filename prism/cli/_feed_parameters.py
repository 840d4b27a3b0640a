"""Options for the parameters of the social feed: a preset, a file, and single ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._simulate_world import settings
from prism.errors import InputError, PrismError
from prism.files._toml import TomlFile
from prism.social import Parameters
from prism.worlds._parameters import check_parameter, group_parameters

PresetName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel="The feed",
        help="Parameters of the feed that resemble published figures: classic, participation, "
        "twitter, browsing or rumour.",
    ),
]
ParameterFile = Annotated[
    Path | None,
    typer.Option(
        "--parameters",
        metavar="FILE",
        rich_help_panel="The feed",
        help="Parameters of the feed, TOML, a line each: reshare_share = 0.2. What it leaves out is "
        "the preset's; --set goes before it.",
    ),
]


def feed_parameters(file: Path | None, given: Iterable[str] | None) -> Mapping[str, Any]:
    """Return the parameters of the feed that a command line asks for.

    Args:
        file: A file of parameters.
        given: ``name=value`` of ``--set``.

    Raises:
        InputError: If the file cannot be read, or holds what cannot be; names line and key.
    """
    return {**({} if file is None else _read(TomlFile.read(file))), **settings(given)}


def _read(file: TomlFile) -> Mapping[str, Any]:
    known = group_parameters(Parameters)
    for name, value in file.data.items():
        if name not in known:
            raise file.error(f"the feed has no such parameter: it has {', '.join(known)}", (name,))
        try:
            Parameters(**{name: value})
        except PrismError as error:
            raise file.error(str(error), (name,)) from None

    return file.data
