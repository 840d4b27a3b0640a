"""The option ``--treatments``: a file of treatments, for a run of the feed or of another world."""

from __future__ import annotations

from collections.abc import Iterable
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
        help="A TOML file of treatments: tables [[treatment]], each with a kind and a round.",
    ),
]


def treatments_of(
    world: str | None, named: Iterable[str] | None, file: Path | None
) -> tuple[str | Treatment, ...]:
    """Return the treatments that a command line asks for: those by name, then those of a file.

    Args:
        world: The world; None for the social feed.
        named: Treatments such as ``warning@12``.
        file: The file.

    Raises:
        InputError: If the file cannot be read, or holds what cannot be; names line and key.
    """
    given: list[str | Treatment] = list(named or ())
    if file is None:
        return tuple(given)
    if world is None:
        return (*given, *read_treatment_file(file, Feed))

    import_from_here()
    return (*given, *read_treatment_file(file, load_world(world)))
