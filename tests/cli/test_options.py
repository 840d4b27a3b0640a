"""The options that commands share: what help says of them is what the library does."""

from dataclasses import fields
from inspect import signature

from prism.cli._options import DEFAULT_SECONDS_BETWEEN
from prism.cli._simulate import simulate
from prism.cli._world import check
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN as SECONDS
from prism.runs._options import WriterOptions
from prism.runs._settings import WriterSettings
from prism.social import SocialRun
from prism.statechart.reasoner._wording import POST_LENGTH
from prism.worlds import WorldRun


def test_help_shows_the_defaults_of_the_library() -> None:
    """Defaults that the command line repeats, to load nothing for its help, are the real ones."""
    shown = {name: each.default for name, each in signature(simulate).parameters.items()}
    real = {each.name: each.default for each in fields(SocialRun)}
    assert (shown["agents"], shown["rounds"], shown["ticks"], shown["seed"]) == (
        *(real["agents"], real["rounds"], real["ticks_per_round"], real["seed"]),
    )

    of_worlds = {each.name: each.default for each in fields(WorldRun)}
    assert signature(check).parameters["agents"].default == str(of_worlds["agents"])
    assert DEFAULT_SECONDS_BETWEEN == SECONDS
    assert WriterSettings.max_length == WriterOptions().max_length == POST_LENGTH
