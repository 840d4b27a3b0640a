"""How active each agent is, and when it is awake."""

from collections import Counter
from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError
from prism.social import Feed
from prism.social._activity import Hours, activities, first_hour

AGENTS = [SocialAgent(f"a{number}") for number in range(1000)]


def shares(parameters: Feed) -> tuple[float, float]:
    found = sorted(activities(AGENTS, parameters, 1), reverse=True)
    assert sum(found) == pytest.approx(1000)
    return sum(found[:10]) / 1000, sum(found[10:100]) / 1000


def test_a_lognormal_activity_has_the_shares_of_its_lorenz_curve() -> None:
    """With sigma 2.12 the first tenth writes .80 (Phi(2.12 - 1.2816) = .799)."""
    top, following = shares(Feed(activity="lognormal", activity_sigma=2.12))
    assert top + following == pytest.approx(0.799, abs=0.002)


def test_a_pareto_activity_has_the_shares_of_its_lorenz_curve() -> None:
    """With exponent 1.5 the first hundredth writes .01 ** (1 / 3) of all."""
    top, _ = shares(Feed(activity="pareto", activity_exponent=1.5))
    assert top == pytest.approx(0.01 ** (1 / 3))


def test_classes_write_the_shares_that_are_named() -> None:
    """The first 1 % and the next 9 % have exactly theirs."""
    assert shares(Feed(activity="classes")) == pytest.approx((0.747, 0.240))


def test_nobody_is_more_active_than_the_limit_and_the_silent_are_silent() -> None:
    """What is cut goes to the others, so that the mean stays 1."""
    given = Feed(activity="lognormal", most_active=5.0, silent_share=0.4)
    found = activities(AGENTS, given, 1)
    assert max(found) == pytest.approx(5)
    assert sum(each == 0 for each in found) == 400
    assert sum(found) == pytest.approx(1000)


def test_where_nobody_may_be_more_active_than_the_mean_all_are_alike() -> None:
    """A limit of 1 leaves everybody the mean."""
    found = activities(AGENTS, Feed(activity="lognormal", most_active=1.0), 1)
    assert found == pytest.approx([1.0] * 1000)


def test_activity_does_not_depend_on_the_order_of_the_list() -> None:
    """Who is active is keyed by seed and agent."""
    given = Feed(activity="lognormal")
    backwards = activities(AGENTS[::-1], given, 1)
    assert backwards[::-1] == activities(AGENTS, given, 1)


def test_agents_are_awake_in_the_hours_of_their_file() -> None:
    """The busiest hour is awake for certain, an hour of 0 never; half of it every other day."""
    frequency = [0] * 24
    frequency[9], frequency[10] = 4, 2
    owl = SocialAgent("owl", attributes={"activity_level_frequency": frequency})
    hours = Hours([owl], Feed(hours="file"), 0)
    awake = [hour for hour in range(24 * 100) if 0 not in hours.asleep(hour)]
    assert {hour % 24 for hour in awake} == {9, 10}
    assert sum(hour % 24 == 9 for hour in awake) == 100
    assert 35 < sum(hour % 24 == 10 for hour in awake) < 65


def test_hours_that_are_not_there_are_asked_for() -> None:
    """The message names the agent and how to keep the column."""
    with pytest.raises(FieldValueError, match=r"agent 'a0'.*--keep activity_level_frequency"):
        Hours(AGENTS[:1], Feed(hours="file"), 0)
    odd = SocialAgent("odd", attributes={"activity_level_frequency": ["often"] * 24})
    with pytest.raises(FieldValueError, match=r"agent 'odd'.*got \['often', "):
        Hours([odd], Feed(hours="file"), 0)


def test_who_sleeps_takes_no_step() -> None:
    """Steps are counted for those who are awake."""
    agents = synthetic_population(50).agents
    given: dict[str, Any] = {"hours": "diurnal", "ticks_per_hour": 1}
    results = Run(Feed(**given), agents, rounds=1, ticks=6).run()
    assert 0.15 < results.totals.agent_ticks / (50 * 6) < 0.4


def test_the_hour_in_which_a_run_begins_may_be_drawn() -> None:
    """Each of the 24 comes up as often as the others; the hour of a seed is always the same."""
    drawn = Feed(first_hour=None)
    found = Counter(first_hour(drawn, seed) for seed in range(2000))
    assert len(found) == 24
    assert max(found.values()) < 2 * min(found.values())
    assert first_hour(drawn, 3) == first_hour(drawn, 3)
    assert first_hour(Feed(first_hour=7), 3) == 7
