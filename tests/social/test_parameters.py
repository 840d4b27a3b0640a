"""The parameters of a feed: each of them changes what happens, and no number stands elsewhere."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import FieldTypeError, FieldValueError
from prism.social import PRESETS, Feed
from prism.worlds import treatment
from tests.kit.worlds import run_logged

GENERATED = {"follow_network": "scale_free", "mean_follows": 4.0}
CHANCES = {"compose_chance": 0.1, "like_chance": 0.3}
IDEAS = {"posts_per_tick": 0.1}
CLASSES = {**IDEAS, "activity": "classes", "top_share": 0.5, "next_share": 0.2}
HOURS = {"hours": "diurnal", "ticks_per_hour": 1}
BUSY = {"compose_chance": 0.5, "like_chance": 0.3, "most_chance": 0.9, "engagement": 0.0}
LIKES = {**CHANCES, "engagement": 0.0, "feed_length": 4}

CHANGED: dict[str, tuple[dict[str, Any], Any]] = {
    "preset": ({}, "twitter"),
    "carries_over": ({}, True),
    "ticks_per_hour": (HOURS, 2),
    "hours": (HOURS, "always"),
    "posts_per_tick": (IDEAS, 0.05),
    "activity": (IDEAS, "lognormal"),
    "activity_sigma": ({**IDEAS, "activity": "lognormal"}, 2.0),
    "top_share": (CLASSES, 0.2),
    "next_share": (CLASSES, 0.45),
    "most_active": ({**IDEAS, "activity": "lognormal"}, 1.5),
    "common_topics": ({}, 5),
    "common_share": ({**IDEAS, "common_topics": 5}, 0.9),
    "engagement": ({}, 0.2),
    "compose_chance": (CHANCES, 0.6),
    "like_chance": (LIKES, 0.6),
    "dislike_chance": (LIKES, 0.5),
    "virality_sigma": (BUSY, 2.0),
    "visit_chance": ({}, 0.5),
    "most_chance": ({**CHANCES, "compose_chance": 0.9}, 0.2),
    "relevance_pull": (BUSY, -2.0),
    "herding": (LIKES, 2.0),
    "herding_down": ({**LIKES, "dislike_chance": 0.5}, -2.0),
    "fading": ({**CHANCES, "compose_chance": 0.3}, 0.0),
    "reply_share": (BUSY, 0.0),
    "reshare_share": (BUSY, 0.0),
    "post_share": (BUSY, 1.0),
    "reshares_once": ({**BUSY, "reply_share": 0.0, "post_share": 0.0, "fading": 1.0}, True),
    "replies_per_cascade": (BUSY, 0),
    "opening_authors": ({}, "drawn"),
    "opening_bias": ({"opening_authors": "drawn"}, 50.0),
    "feed": ({}, "chronological"),
    "feed_length": ({}, 3),
    "candidates": ({"feed": "chronological"}, 1),
    "follow_network": (GENERATED, "given"),
    "mean_follows": (GENERATED, 5.0),
    "reciprocity": (GENERATED, 1.0),
    "follower_exponent": (GENERATED, 3.5),
    "shows_scores": ({}, True),
    "up_treated": ({}, 0.5),
    "down_treated": ({}, 0.5),
}
"""Of each parameter: with which others a run goes by it, and another value."""

OF_FILES = {"first_posts"}


def happens(folder: Path, parameters: dict[str, Any], cache: dict[str, bytes]) -> bytes:
    """Return all that happens in a run with some parameters, and who takes part."""
    key = repr(sorted(parameters.items()))
    if key not in cache:
        feed = Feed(**{"preset": "classic", **parameters})
        done = run_logged(folder, feed, 40, rounds=2, ticks=10)
        # the first line has the parameters themselves
        cache[key] = done.log.partition(b"\n")[2]
    return cache[key]


@pytest.mark.slow
def test_every_parameter_changes_what_happens(tmp_path: Path) -> None:
    """Of all parameters there is none that a run does not go by."""
    assert {*CHANGED} | OF_FILES == {*Feed.fields}
    cache: dict[str, bytes] = {}
    idle = [
        name
        for name, (others, value) in CHANGED.items()
        if happens(tmp_path, others, cache) == happens(tmp_path, others | {name: value}, cache)
    ]
    assert not idle


def test_parameters_come_back_from_run_json() -> None:
    """What JSON holds of the parameters is read as the same run."""
    run = Run(Feed, 5, parameters={"mean_follows": "2.5", "replies_per_cascade": "none"})
    config = json.loads(json.dumps(run.to_config()))
    values = {"mean_follows": 2.5, "replies_per_cascade": None}
    assert config["parameters"].items() >= values.items()
    assert Run.from_config(config, Path("run.json")).to_config() == run.to_config()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"feed": "popular"}, "feed: Input should be 'interests' or 'chronological', got"),
        ({"follow_network": "scalefree"}, "follow_network: Input should be 'given'"),
        ({"opening_authors": "all"}, "opening_authors: Input should be 'each' or 'drawn'"),
        ({"preset": "twiter"}, "preset must be one of conversation, .* got 'twiter'"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    """The message names the parameters and what they were."""
    with pytest.raises((FieldTypeError, FieldValueError), match=message):
        Feed(**values)


def test_a_class_has_a_preset_and_parameters_of_its_own() -> None:
    """What it declares holds for every preset, and what is passed holds before both."""

    class Quiet(Feed):
        preset = "classic"
        posts_per_tick: float = 0.5

    assert (Quiet().engagement, Quiet().posts_per_tick) == (Feed(preset="classic").engagement, 0.5)
    assert Quiet(preset="twitter", posts_per_tick=0.1).posts_per_tick == 0.1
    assert Quiet(preset="twitter").fading == Feed(preset="twitter").fading
    assert {name for name, preset in PRESETS.items() if not preset.values} == {"conversation"}


@pytest.mark.parametrize(("preset", "minutes"), [("conversation", 5), ("rumour", 10)])
@pytest.mark.sampled(2)
def test_the_clock_moves_by_the_length_of_a_tick(preset: str, minutes: int) -> None:
    """The run's clock moves by what ``ticks_per_hour`` says."""
    run = Run(Feed, 100, rounds=2, ticks=3, parameters={"preset": preset})
    before = run.clock.moment.time
    run.run()
    assert run.clock.moment.time - before == timedelta(minutes=6 * minutes)


def test_what_determined_the_population_cannot_change() -> None:
    """A treatment of the run is refused before the first round, one of the class when applied."""

    class Faster(Feed):
        @treatment
        def faster(self) -> None:
            """Let less time pass in a tick."""
            self.ticks_per_hour = 60

    for rounds, treatment_of in enumerate(("ticks_per_hour=60@2", "faster@2")):
        run, ended = Run(Faster, 10, rounds=2, treatments=[treatment_of]), list[Any]()
        with pytest.raises(FieldValueError, match="ticks_per_hour cannot change during a run"):
            run.run(ended.append)
        assert len(ended) == rounds
