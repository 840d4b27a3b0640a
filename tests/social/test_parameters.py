"""The parameters of a feed: each of them changes what happens, and no number stands elsewhere."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import ARCHETYPES, SocialAgent
from prism.errors import DefinitionError, FieldTypeError, FieldValueError, InputError
from prism.social import Feed
from prism.worlds import SetParameters, measure, state

TWITTER = Path(__file__).parents[1] / "data" / "twitter.csv"

GENERATED = {"follow_network": "random", "mean_follows": 4.0, "logs_follows": True}
MIXED = {"feed": "mixed", "feed_length": 4}
CHANCES = {"compose_chance": 0.1, "like_chance": 0.3}
IDEAS = {"posts_per_tick": 0.1}
CLASSES = {**IDEAS, "activity": "classes", "top_agents": 0.1, "top_share": 0.5, "next_share": 0.2}
HOURS = {"hours": "diurnal", "ticks_per_hour": 1}
BUSY = {"lurker_threshold": 0.1, "lurker_composing": 2.0, "lurker_liking": 2.0}
LIKES = {**CHANCES, "engagement": 0.0, "feed_length": 4}
ALIKE = {**LIKES, "like_chance": 0.5, "beyond_follows": 1.0, "feed": "collaborative"}

CHANGED: dict[str, tuple[dict[str, Any], Any]] = {
    "carries_over": ({}, True),
    "ticks_per_hour": (HOURS, 2),
    "hours": (HOURS, "always"),
    "diurnal_curve": (HOURS, (0.5,) * 24),
    "first_hour": (HOURS, 12),
    "posts_per_tick": (IDEAS, 0.05),
    "activity": (IDEAS, "lognormal"),
    "activity_sigma": ({**IDEAS, "activity": "lognormal"}, 2.0),
    "activity_exponent": ({**IDEAS, "activity": "pareto"}, 3.0),
    "top_agents": (CLASSES, 0.2),
    "next_agents": (CLASSES, 0.3),
    "top_share": (CLASSES, 0.2),
    "next_share": (CLASSES, 0.45),
    "silent_share": (IDEAS, 0.6),
    "most_active": ({**IDEAS, "activity": "lognormal"}, 1.5),
    "common_topics": ({}, 5),
    "common_share": ({**IDEAS, "common_topics": 5}, 0.9),
    "engagement": ({}, 0.2),
    "compose_chance": (CHANCES, 0.6),
    "like_chance": (LIKES, 0.6),
    "dislike_chance": (LIKES, 0.5),
    "most_chance": ({**CHANCES, "compose_chance": 0.9}, 0.2),
    "relevance_pull": (BUSY, -2.0),
    "herding": (LIKES, 2.0),
    "herding_down": ({**LIKES, "dislike_chance": 0.5}, -2.0),
    "fading": ({**CHANCES, "compose_chance": 0.3}, 0.0),
    "reply_share": (BUSY, 0.0),
    "reshare_share": (BUSY, 0.0),
    "post_share": (BUSY, 1.0),
    "reshares_once": ({**BUSY, "engagement": 0.0, "reply_share": 0.0, "post_share": 0.0}, True),
    "replies_per_cascade": ({**BUSY, "engagement": 0.0}, 0),
    "resting_ticks": (BUSY, 5),
    "opening_authors": ({}, "hub"),
    "opening_bias": ({"opening_authors": "drawn"}, 50.0),
    "virality_sigma": (CHANCES, 2.0),
    "visit_chance": ({}, 0.1),
    "feed": ({}, "random"),
    "feed_length": ({}, 2),
    "candidates": ({"feed": "chronological"}, 1),
    "beyond_follows": ({}, 1.0),
    "mix_chronological": (MIXED, 0.0),
    "mix_interests": (MIXED, 5.0),
    "mix_popular": (MIXED, 0.0),
    "mix_random": (MIXED, 5.0),
    "mix_collaborative": (MIXED | LIKES, 5.0),
    "hot_half_life": (LIKES | {"feed": "popular"}, 0.1),
    "similar_agents": (ALIKE, 1),
    "likes_compared": (ALIKE, 1),
    "follow_network": (GENERATED, "small_world"),
    "mean_follows": (GENERATED, 5.0),
    "reciprocity": (GENERATED, 1.0),
    "follower_exponent": (GENERATED | {"follow_network": "scale_free"}, 3.5),
    "rewired": (GENERATED | {"follow_network": "small_world"}, 0.9),
    "within_block": (GENERATED | {"follow_network": "blocks"}, 0.1),
    "blocks": (GENERATED | {"follow_network": "blocks"}, 2),
    "block_by": (GENERATED | {"follow_network": "blocks"}, "missing"),
    "shows_scores": ({}, True),
    "logs_follows": ({}, True),
    **{
        f"{kind}_{number}": ({f"{other}_share": 0.0 for other in ARCHETYPES if other != kind}, to)
        for kind in ARCHETYPES
        for number, to in (
            ("threshold", 0.15),
            ("timeout", 2),
            ("scrolling", -3.0),
            ("liking", 4.0),
            ("composing", 4.0),
        )
    },
    **{f"{kind}_share": ({"lurker_share": 0.3}, 0.9) for kind in ARCHETYPES},
}
"""Of each parameter: with which others a run goes by it, and another value."""


class Told:
    """A logger that keeps what happens in the rounds, and who takes part."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **keys: Any) -> None:
        if event != "run.started":
            self.events.append((event, keys))

    warning = error = info


def happens(parameters: dict[str, Any], cache: dict[str, Any]) -> Any:
    """Return all that happens in a run with some parameters, or what is wrong with them."""
    key = repr(sorted(parameters.items()))
    if key not in cache:
        told = Told()
        run = Run(Feed, 40, rounds=2, ticks=10, parameters={"preset": "classic", **parameters})
        try:
            run.prepare(told).run()
        except FieldValueError as error:
            told.events = [(str(error), {})]
        cache[key] = told.events

    return cache[key]


@pytest.mark.long
def test_every_parameter_changes_what_happens() -> None:
    """Of all parameters there is none that a run does not go by."""
    # a model alone is told of its activity, and made-up agents have interests without words
    assert {*CHANGED, "shows_activity"} == {*Feed.fields}
    cache: dict[str, Any] = {}
    idle = [
        name
        for name, (others, value) in CHANGED.items()
        if happens(others, cache) == happens(others | {name: value}, cache)
    ]
    assert not idle


def test_agents_have_the_numbers_of_their_archetypes() -> None:
    """The parameters' numbers go to agents of the three archetypes, but for what is their own."""
    now: Any = {"lurker_threshold": 0.2, "lurker_timeout": 3, "lurker_liking": 1.25}
    own = SocialAgent("own", interests=["art"], archetype="lurker", engagement_threshold=0.6)
    agents = [SocialAgent("ann", interests=["art"], archetype="lurker"), own, SocialAgent("bo")]
    _ = Run(Feed(first_posts=(), **now), agents, rounds=1).agents
    assert [each.engagement_threshold for each in agents] == [0.2, 0.6, 0.5]
    assert [each.timeout_threshold for each in agents] == [3, 3, 5]
    assert agents[0].archetype is not None
    assert agents[0].archetype.inclinations["engaging_like"] == 1.25
    assert ARCHETYPES["lurker"].engagement_threshold == 0.7


def test_a_run_makes_up_its_agents_by_its_parameters() -> None:
    """Shares of archetypes are as the parameters say."""
    given = {"lurker_share": 0, "contributor_share": 0}
    agents = Run(Feed, 30, parameters=given).prepare(None).agents
    assert {each.archetype and each.archetype.name for each in agents} == {"superuser"}
    assert {each.engagement_threshold for each in agents} == {0.3}


def test_a_run_reads_its_agents_by_its_parameters() -> None:
    """Archetypes are drawn by their shares."""
    given = {"lurker_share": 0, "superuser_share": 0, "contributor_timeout": 7}
    agents = Run(Feed, TWITTER, parameters={"preset": "classic", **given}).prepare(None).agents
    assert {each.archetype and each.archetype.name for each in agents} == {"contributor"}
    assert {each.timeout_threshold for each in agents} == {7}


def test_options_come_back_from_run_json() -> None:
    """What JSON holds of the parameters, a list where a tuple was, is read as the same run."""
    run = Run(Feed, 5, parameters={"diurnal_curve": "[1" + ", 0.5" * 23 + "]", "rewired": 0.2})
    config = json.loads(json.dumps(run.to_config()))
    assert config["parameters"]["diurnal_curve"] == [1.0, *[0.5] * 23]
    assert Run.from_config(config, Path("run.json")).to_config() == run.to_config()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"diurnal_curve": (0.5,)}, "diurnal_curve must be 24 numbers from 0 to 1"),
        (dict.fromkeys(("lurker_share", "contributor_share", "superuser_share"), 0), "above 0"),
        ({"top_agents": 0.5, "next_agents": 0.6}, "must be 1 or less together, got 0.5 and 0.6"),
        ({"top_share": 0.8}, "must be 1 or less together, got 0.8 and 0.24"),
        (
            {"opening_authors": "all"},
            "must be one of each, hub, drawn, none, got 'all'",
        ),
    ],
)
def test_what_cannot_be_together_is_refused(given: dict[str, Any], told: str) -> None:
    """The message names the parameters and what they were."""
    with pytest.raises((FieldTypeError, FieldValueError), match=told):
        Feed(**given)


def test_a_preset_that_does_not_exist_is_refused() -> None:
    """The presets are listed."""
    with pytest.raises(InputError, match=r"'preset': must be one of conversation, .* got 'twiter'"):
        Feed(preset="twiter")


def test_a_class_has_a_preset_and_parameters_of_its_own() -> None:
    """What it declares holds for every preset, and what is given holds before both."""

    class Quiet(Feed):
        preset = "classic"
        posts_per_tick: float = 0.5

    assert (Quiet().engagement, Quiet().posts_per_tick) == (Feed(preset="classic").engagement, 0.5)
    assert Quiet(preset="twitter", posts_per_tick=0.1).posts_per_tick == 0.1
    assert Quiet(preset="twitter").fading == Feed(preset="twitter").fading


def test_a_parameter_cannot_be_hidden() -> None:
    """A measure or state of its name is refused, and its range holds for another default."""

    class Measured(Feed):
        @measure
        def activity(self) -> int:
            return 1

    class Changing(Feed):
        fading: float = state(0.5)

    class Wild(Feed):
        fading: float = 1.5

    for cls, name in ((Measured, "activity"), (Changing, "fading")):
        with pytest.raises(DefinitionError, match=f"{name} would hide a parameter of the feed"):
            cls()
    with pytest.raises(FieldValueError, match=r"fading must be at least 0 and at most 1, got 1\.5"):
        Wild()


@pytest.mark.parametrize(("preset", "minutes"), [("conversation", 5), ("rumour", 10)])
@pytest.mark.sampled(2)
def test_the_clock_moves_by_the_length_of_a_tick(preset: str, minutes: int) -> None:
    """The run's clock moves by what ``ticks_per_hour`` says, which nobody can change meanwhile."""
    run = Run(Feed, 100, rounds=2, ticks=3, parameters={"preset": preset})
    before = run.clock.moment.time
    run.run()
    assert run.clock.moment.time - before == timedelta(minutes=6 * minutes)
    assert run.clock.ticks == 6


@pytest.mark.parametrize(("name", "value"), [("ticks_per_hour", 60), ("posts_per_tick", 0.5)])
def test_what_determined_the_population_cannot_change(name: str, value: float) -> None:
    """The hours, and whether agents have ideas of their own, are fixed when a run begins."""
    given = {"parameters": {"preset": "classic"}, "treatments": [SetParameters(2, {name: value})]}
    with pytest.raises(FieldValueError, match=f"{name} cannot change during a run"):
        Run(Feed, 10, rounds=2, **given).run()
