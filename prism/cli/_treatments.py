"""The option ``--treatments``: a file of treatments, for a run of the feed or of another world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prism.cli._chart_argument import import_from_here
from prism.social import Feed
from prism.worlds import Treatment
from prism.worlds._addresses import load_world
from prism.worlds._treatment_tables import read_treatment_file

TreatmentFile = Annotated[
    Path | None,
    typer.Option(
        "--treatments",
        metavar="FILE",
        help="A TOML file of treatments: a table 'treatment' for each, with its kind and round.",
    ),
]


def treatments_in_file(world: str | None, file: Path) -> tuple[str | Treatment, ...]:
    """Return the treatments of a file for a world.

    Args:
        world: The world; None for the social feed.
        file: The file.

    Raises:
        InputError: If the file cannot be read, or holds what cannot be; names line and key.
    """
    if world is None:
        return tuple(read_treatment_file(file, Feed))

    import_from_here()
    return tuple(read_treatment_file(file, load_world(world)))
