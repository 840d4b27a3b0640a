"""How active each agent is, and when it is awake."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent
from prism.social import Feed

AGENTS = [SocialAgent(f"a{number}") for number in range(1000)]


def activities(agents: list[SocialAgent] = AGENTS, **parameters: Any) -> dict[str, float]:
    """Return the activity of each agent of a run."""
    feed = Feed(first_posts=(), **parameters)
    Run(feed, agents, seed=1).prepare(None)
    return {reader.agent_id: reader.activity for reader in feed.agents}


def shares(**parameters: Any) -> tuple[float, float]:
    ordered = sorted(activities(**parameters).values(), reverse=True)
    assert sum(ordered) == pytest.approx(1000)
    return sum(ordered[:10]) / 1000, sum(ordered[10:100]) / 1000


def test_a_lognormal_activity_has_the_shares_of_its_lorenz_curve() -> None:
    """With sigma 2.12 the first tenth writes .80 (Phi(2.12 - 1.2816) = .799)."""
    top, following = shares(activity="lognormal", activity_sigma=2.12)
    assert top + following == pytest.approx(0.799, abs=0.002)


def test_classes_write_the_shares_that_are_named() -> None:
    """The first 1 % and the next 9 % have exactly theirs."""
    assert shares(activity="classes") == pytest.approx((0.747, 0.240))


def test_nobody_is_more_active_than_the_limit() -> None:
    """What is cut goes to the others, so that the mean stays 1."""
    values = [*activities(activity="lognormal", most_active=5.0).values()]
    assert max(values) == pytest.approx(5)
    assert sum(values) == pytest.approx(1000)


def test_activity_does_not_depend_on_the_order_of_the_list() -> None:
    """Who is active is keyed by seed and agent."""
    assert activities(AGENTS[::-1]) == activities()


class Watched(Feed):
    """A feed whose agents do nothing but open their feeds, an hour a round."""

    ticks = 1
    ticks_per_hour: int = 1
    hours: Any = "file"
    posts_per_tick: float = 0.0
    common_topics: int = 0

    def setup(self) -> None:
        """Begin to count."""
        super().setup()
        self.visits: Counter[int] = Counter()

    def rank(self, reader: Any, posts: Any, stream: Any) -> Any:
        self.visits[self.round - 1] += 1
        return []


def owl(*frequency: Any) -> SocialAgent:
    return SocialAgent("owl", attributes={"activity_level_frequency": [*frequency]})


def test_agents_are_awake_in_the_hours_of_their_file() -> None:
    """The busiest hour is awake for certain, an hour of 0 never; half of it every other day."""
    feed = Watched(first_posts=())
    Run(feed, [owl(*[0] * 9, 4, 2, *[0] * 13)], rounds=24 * 40).run()
    hours = Counter(hour % 24 for hour in feed.visits)
    assert hours.keys() == {9, 10}
    assert hours[9] == 40
    assert 12 < hours[10] < 28


def test_few_are_awake_at_night() -> None:
    """Those who sleep do not open their feeds."""
    feed = Watched(hours="diurnal", first_posts=())
    Run(feed, AGENTS, rounds=6).run()
    assert 0.15 < sum(feed.visits.values()) / 6000 < 0.4


def test_the_hour_in_which_a_run_begins_may_be_drawn() -> None:
    """Many of the 24 come up, and the hour of a seed is always the same."""

    def first(seed: int) -> int:
        feed = Watched(first_posts=(), first_hour=None)
        Run(feed, [owl(*[0] * 9, 4, *[0] * 14)], rounds=24, seed=seed).run()
        return min(feed.visits)

    hours = [first(seed) for seed in range(20)]
    assert len({*hours}) > 10
    assert hours[:2] == [first(seed) for seed in range(2)]


def test_no_time_passes_for_those_who_sleep(tmp_path: Path) -> None:
    """Who falls asleep over a post decides in the first tick awake, as the log says."""
    Run(Feed(preset="rumour"), 100, rounds=3, seed=1).keep(tmp_path / "run")
    lines = map(json.loads, (tmp_path / "run" / "events.jsonl").read_text().splitlines())
    ticks = {each["ticks_in_state"] for each in lines if each.get("from_state") == "evaluating"}
    assert ticks == {1}
