"""``prism log`` of what worlds have logged: measures, treatments, their arms, and their own."""

from __future__ import annotations

from typing import Annotated

import typer

from prism.cli._log import Format, Out, Runs, show


def measures(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """List what the measures of worlds came to in each round.

    [bold]Example[/bold]

    prism log measures runs/beta-0.1 runs/beta-0.3 -o measures.parquet
    """
    from prism.analysis import measures as measured

    show(runs, measured, as_format, out)


def treatments(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """List the treatments that worlds were given, and the parameters that they changed."""
    from prism.analysis import treatments as applied

    show(runs, applied, as_format, out)


def assignments(
    runs: Runs,
    posts: Annotated[
        bool, typer.Option("--posts", help="Say what became of the posts that were assigned.")
    ] = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """List who and what was assigned to the arms of experiments."""
    from prism.analysis import assignments as assigned
    from prism.analysis import treated_posts

    show(runs, treated_posts if posts else assigned, as_format, out)


def arms(
    runs: Runs,
    by_round: Annotated[
        bool, typer.Option("--by-round", help="Compare the posts of each round by themselves.")
    ] = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Compare what became of the posts in the arms of experiments.

    [bold]Example[/bold]

    prism log arms runs/herd
    """
    from prism.analysis import arms as compared

    show(runs, lambda opened: compared(opened, by_round=by_round), as_format, out)


def parameters(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """List the runs with the parameters of their worlds."""
    from prism.analysis import parameters as given

    show(runs, given, as_format, out)


def world(
    runs: Runs,
    event: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="List the events of this name, with their own keys, instead of counting all.",
            show_default=False,
        ),
    ] = None,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Count the events that worlds have logged themselves, or list those of one name.

    [bold]Example[/bold]

    prism log world runs/market --event sold --format csv
    """
    from prism.analysis import world_event_counts, world_events

    if event is None:
        show(runs, world_event_counts, as_format, out)
    else:
        show(runs, lambda opened: world_events(opened, event), as_format, out)


OF_WORLDS = (measures, treatments, assignments, arms, parameters, world)
"""The commands, in the order of the help."""
