"""How active each agent is, and when it is awake."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.social import Feed, Reader

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
    hours: Any = "diurnal"
    posts_per_tick: float = 0.0
    common_topics: int = 0

    def setup(self) -> None:
        """Begin to count."""
        super().setup()
        self.visits: Counter[int] = Counter()

    def rank(self, reader: Any, posts: Any, stream: Any) -> Any:
        self.visits[self.round - 1] += 1
        return []


def test_few_are_awake_at_night() -> None:
    """Those who sleep do not open their feeds; the seed decides in which hour a run begins."""

    def awake(seed: int) -> list[int]:
        feed = Watched(first_posts=())
        Run(feed, AGENTS[:250], rounds=24, seed=seed).run()
        return [feed.visits[hour] for hour in range(24)]

    days = [awake(seed) for seed in range(4)]
    assert all(0.1 < min(day) / 250 < 0.24 and max(day) / 250 > 0.93 for day in days)
    assert len({day.index(min(day)) for day in days}) > 2
    assert awake(0) == days[0]


class Growing(Feed):
    """A feed that others join."""

    late: Any = ()

    def round_begins(self) -> None:
        """Let them join."""
        for agent in self.late:
            self.add(agent)


def share_above(reader: Reader, others: Sequence[Reader]) -> float:
    """Return the share of others who are more active."""
    return sum(each.activity > reader.activity for each in others) / len(others)


def test_who_joins_is_as_active_as_those_of_its_rank() -> None:
    """By archetype, then as the ids draw; and it has the interests of one that began the run."""
    agents = synthetic_population(1090, seed=1).agents
    feed = Growing(first_posts=(), late=agents[1010:])
    Run(feed, agents[:1010], rounds=1, ticks=1, seed=1).run()
    first, late = feed.agents[:1010], feed.agents[1010:]
    whole = Growing(first_posts=())
    Run(whole, agents, seed=1).prepare(None)
    whole_by_id = {reader.agent_id: reader for reader in whole.agents}
    for reader in late:
        same = whole_by_id[reader.agent_id]
        assert reader.interests == same.interests
        assert reader.activity in {each.activity for each in first}
        share = share_above(same, whole.agents)
        assert share_above(reader, first) == pytest.approx(share, abs=0.02)


def test_no_time_passes_for_those_who_sleep(tmp_path: Path) -> None:
    """Who falls asleep over a post decides in the first tick awake, as the log says."""
    Run(Feed(preset="rumour"), 100, rounds=3, seed=1).keep(tmp_path / "run")
    lines = map(json.loads, (tmp_path / "run" / "events.jsonl").read_text().splitlines())
    ticks = {each["ticks_in_state"] for each in lines if each.get("from_state") == "evaluating"}
    assert ticks == {1}
