"""The options that commands share: what help says of them is what the library does."""

from typing import get_args

from prism.cli._options import Keeping, documented
from prism.cli._world import check
from prism.llm._settings import WriterSettings
from prism.runs import WriterOptions
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN
from prism.statechart.reasoner._wording import POST_LENGTH
from prism.worlds._world import DEFAULT_AGENTS


def test_help_shows_the_defaults_of_the_library() -> None:
    """Defaults that the command line repeats, to load nothing for its help, are the real ones."""
    (_, option) = get_args(documented(check)["agents"].annotation)
    assert f"; {DEFAULT_AGENTS} by default" in option.help
    (_, checkpoint_every) = get_args(documented(Keeping)["checkpoint_every"].annotation)
    assert f"; {DEFAULT_SECONDS_BETWEEN:g} by default" in checkpoint_every.help
    assert WriterSettings.max_length == WriterOptions().max_length == POST_LENGTH
