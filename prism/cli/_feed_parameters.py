"""Options for what is run: a preset, parameters, and files of parameters and treatments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._chart_argument import import_from_here
from prism.cli._simulate_world import settings
from prism.worlds import Treatment
from prism.worlds._addresses import FEED, address_of, load_world
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
TreatmentFile = Annotated[
    Path | None,
    typer.Option(
        "--treatments",
        metavar="FILE",
        help="A TOML file of treatments: a table 'treatment' for each, with its kind and round.",
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
    of_file = {} if file is None else read_parameter_file(file, _class_of(world))
    of_preset: Mapping[str, Any] = {}
    # a run of the feed itself takes its preset by name
    if preset is not None and world is not None:
        from prism.social import Parameters

        of_preset = Parameters.preset(preset).to_dict()

    return {**of_preset, **of_file, **settings(given)}


def treatments_in_file(world: str | None, file: Path) -> tuple[str | Treatment, ...]:
    """Return the treatments of a file for a world.

    Args:
        world: The world; None for the social feed.
        file: The file.

    Raises:
        InputError: If the file cannot be read, or holds what cannot be; names line and key.
    """
    # pydantic reads the tables, and most runs have none
    from prism.worlds._treatment_tables import read_treatment_file

    return tuple(read_treatment_file(file, _class_of(world)))


def _class_of(world: str | None) -> Any:
    if world is None:
        return load_world(FEED)

    import_from_here()
    return load_world(address_of(world))
