"""Options for the parameters of the social feed: a preset, a file, and single ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._chart_argument import import_from_here
from prism.cli._simulate_world import settings
from prism.social import Feed, Parameters
from prism.worlds._addresses import address_of, load_world
from prism.worlds._parameters import read_parameter_file

PresetName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel="The feed",
        help="Parameters of the feed that resemble published figures: participation, which is the "
        "default, twitter, browsing, rumour, or classic, which resembles none.",
    ),
]
ParameterFile = Annotated[
    Path | None,
    typer.Option(
        "--parameters",
        metavar="FILE",
        rich_help_panel="The feed",
        help="Parameters of the feed, TOML, a line each: reshare_share = 0.2; or JSON or YAML. "
        "What it leaves out is the preset's, and --set overrides it.",
    ),
]


def feed_parameters(
    world: str | None, preset: str | None, file: Path | None, given: Iterable[str] | None
) -> Mapping[str, Any]:
    """Return the parameters that a command line asks for, of the feed or of another world.

    Args:
        world: The world; None for the social feed.
        preset: A preset, whose values are among them for a feed of one's own.
        file: A file of parameters.
        given: ``name=value`` of ``--set``.

    Raises:
        InputError: If the file cannot be read, or holds what cannot be; lists all by line and key.
    """
    of_file: Mapping[str, Any] = {}
    if file is not None:
        if world is not None:
            import_from_here()
        of_file = read_parameter_file(
            file, Feed if world is None else load_world(address_of(world))
        )
    # a run of the feed itself takes its preset by name
    of_preset = {} if preset is None or world is None else Parameters.preset(preset).to_dict()

    return {**of_preset, **of_file, **settings(given)}
