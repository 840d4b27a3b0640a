"""Timers and chance: limits of composites, `after`, `rate` and `probability`."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from contextlib import nullcontext
from functools import partial
from math import exp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from prism.agents import SocialAgent
from prism.errors import AgentError
from prism.statechart import AgentState as S
from prism.statechart import State, Statechart, Transition
from tests.statechart.nested.phone import Day, Owner, Phone, Sleeper, day, phone

SEEDS = range(20)


def ticks_until(chart: Statechart[Any], agent: Any, state: Any, most: int = 100) -> int:
    """Return the tick in which an agent comes to a state."""
    return next(n for n in range(1, most) if (chart.tick(agent), agent.state == state)[1])


def test_after_is_exact_to_the_tick_and_a_limit_is_strictly_greater() -> None:
    """`after=5` fires in the fifth tick, a limit of 5 in the sixth, whatever moved inside."""
    tires = phone(Transition("tires", Phone.ENGAGING, Phone.POCKET, after=5))
    limited = phone(
        Transition("timeout", Phone.ENGAGING, Phone.POCKET), timeouts={Phone.ENGAGING: 5}
    )
    for chart, expected in ((tires, 5), (limited, 6)):
        agent = Owner()
        chart.begin(agent)
        chart.fire(agent, "opens")
        chart.tick(agent)
        chart.fire(agent, "writes")
        assert ticks_until(chart, agent, Phone.POCKET) == expected - 1
        assert agent.state_history[-1].trigger in ("tires", "timeout")


def resting(*more: Transition[S], after: Any = 3, states: Any = (), **options: Any) -> Any:
    """Return a chart in which whoever rests wakes, with or without an unrelated composite."""
    moves = [Transition("wakes", S.RESTING, S.IDLE, after=after, action=options.pop("act", None))]
    rests = Transition("rests", S.IDLE, S.RESTING)
    return Statechart([S.IDLE, S.RESTING, *states], [*more, *moves, rests], S.IDLE, **options)


COMPOSITE = [State(S.COMPOSING, [S.EVALUATING, S.SCROLLING])]
PLAIN = partial(SimpleNamespace, ticks_in_state=0, timeout_threshold=99)


@pytest.mark.parametrize("states", [(), COMPOSITE], ids=["flat", "nested"])
@pytest.mark.parametrize("is_plain", [True, False])
def test_a_state_that_is_assigned_begins_its_time_anew(states: Any, is_plain: bool) -> None:
    """However long the agent was in the state before, and whether or not it was ever left."""
    chart = resting(states=states)
    agent: Any = chart.adopt(PLAIN() if is_plain else SocialAgent("ada", timeout_threshold=99))
    for dwelt in (0, 2, 3, 10):
        for _ in range(dwelt):
            chart.tick(agent)
        agent.state = S.RESTING
        assert ticks_until(chart, agent, S.IDLE) == 3
        chart.fire(agent, "rests")
        chart.tick(agent)
        agent.state = S.IDLE


@pytest.mark.parametrize("states", [(), COMPOSITE], ids=["flat", "nested"])
def test_a_function_says_the_time_anew_on_each_entry(states: Any) -> None:
    """What it said is kept with the agent, so copies, pickles and resumed agents keep it."""
    delays = [4, np.int64(2), 3]
    chart = resting(after=lambda _agent: delays.pop(0), states=states)
    agent = chart.adopt(PLAIN())
    chart.fire(agent, "rests")
    chart.tick(agent)
    for twin in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert ticks_until(chart, twin, S.IDLE) == 3
    assert ticks_until(chart, agent, S.IDLE) == 3
    chart.fire(agent, "rests")
    json.dumps(agent.state_memory)
    assert ticks_until(chart, agent, S.IDLE) == 2
    agent.state = S.RESTING
    assert (ticks_until(chart, agent, S.IDLE), delays) == (3, [])


@pytest.mark.parametrize("given", [2.5, "soon"])
@pytest.mark.parametrize("strict", [True, False])
def test_a_function_must_say_a_whole_number_of_ticks(
    given: Any, strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Anything else is an error as that of a guard: raised or logged again in each tick."""
    chart = resting(after=lambda agent: agent.delay, strict=strict)
    agent = chart.adopt(PLAIN(state=S.IDLE, delay=given))
    message = f"'{type(given).__name__}' object cannot be interpreted as an integer"
    for drive in (lambda: chart.fire(agent, "rests"), lambda: chart.tick(agent)):
        with pytest.raises(TypeError, match=message) if strict else nullcontext():
            drive()
    assert agent.state is S.RESTING
    assert caplog.text.count(message) == (0 if strict else 2)


def test_a_guard_may_refuse_what_is_due() -> None:
    """Then its time has come and gone."""
    tires = Transition("tires", Phone.ENGAGING, Phone.POCKET, lambda *_: False, after=1)
    chart, agent = phone(tires), Owner()
    chart.begin(agent)
    chart.fire(agent, "opens")
    assert [chart.tick(agent), chart.tick(agent)] == [None, None]


def failing_once(agent: Any, _context: Any) -> None:
    """Raise the first time."""
    if not hasattr(agent, "has_failed"):
        agent.has_failed = True
        raise ValueError("once")


def test_an_error_of_a_strict_chart_takes_no_timer_with_it() -> None:
    """What else is due is made, and what raised stays due."""
    chart = resting(act=failing_once, strict=True)
    agent = PLAIN(state=S.RESTING)
    with pytest.raises(ValueError, match="once"):
        ticks_until(chart, agent, S.IDLE)
    assert chart.tick(agent) is S.IDLE
    chart = day(
        Transition("tires", Day.FRESH, Day.TIRED, after=1),
        Transition("opens", Day.IDLE, Day.FEED, action=failing_once, after=1),
        strict=True,
    )
    sleeper = Sleeper()
    chart.begin(sleeper)
    chart.fire(sleeper, "wakes")
    with pytest.raises(ValueError, match="once"):
        chart.tick(sleeper)
    assert sleeper.state == "idle+tired"
    assert chart.tick(sleeper) == "feed+tired"


def test_dwell_times_under_a_rate_are_geometric() -> None:
    """In 20 seeds the share that leaves in the first ticks is that of ``1 - exp(-rate)``."""
    chart = phone(
        Transition("idles", Phone.READING, Phone.POCKET, rate=0.25),
        Transition("breaks", Phone.READING, Phone.BROKEN, rate=lambda a, c: 0.75),
    )
    left: Counter[int] = Counter()
    ends: Counter[Any] = Counter()
    for seed in SEEDS:
        agent = Owner(seed)
        for _ in range(100):
            chart.begin(agent)
            chart.fire(agent, "opens")
            left[next(n for n in range(1, 200) if chart.tick(agent))] += 1
            ends[agent.state] += 1

    chance = 1 - exp(-1.0)
    expected = [2000 * chance * (1 - chance) ** n for n in range(4)]
    found = [left[n] for n in range(1, 5)]
    rest = 2000 - sum(expected)
    assert chisquare([*found, 2000 - sum(found)], [*expected, rest]).pvalue > 0.001
    assert binomtest(ends[Phone.POCKET], 2000, 0.25).pvalue > 0.001


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (0.0, Phone.READING),
        (0.29, Phone.READING),
        (0.31, Phone.REPLYING),
        (0.49, Phone.REPLYING),
        (0.51, Phone.BROKEN),
        (0.99, Phone.BROKEN),
    ],
)
def test_probabilities_share_out_and_the_rest_goes_to_the_first_without_one(
    number: float, end: Phone
) -> None:
    """One number decides."""
    chart = phone(
        Transition("looks", Phone.POCKET, Phone.READING, probability=0.3),
        Transition("looks", Phone.POCKET, Phone.REPLYING, probability=0.2),
        Transition("looks", Phone.POCKET, Phone.BROKEN),
        Transition("looks", Phone.POCKET, Phone.READING),
        Transition("turns", Phone.POCKET, Phone.READING, probability=0.5),
    )
    agent: Any = Owner()
    agent.random = SimpleNamespace(random=lambda: number)
    chart.begin(agent)
    assert (chart.fire(agent, "turns") is not None) is (number < 0.5)
    chart.begin(agent)
    assert chart.fire(agent, "looks") is end


@pytest.mark.parametrize("rate", [float("nan"), -1, "often"])
def test_a_rate_that_is_none_is_reported(rate: Any, caplog: pytest.LogCaptureFixture) -> None:
    """As a guard that fails, and the transition does not happen."""
    moves = Phone.POCKET, Phone.BROKEN
    chart = phone(Transition("idles", *moves, rate=lambda _a, _c: rate))
    assert chart.tick(Owner()) is None
    assert "guard_failed" in caplog.text
    with pytest.raises(AgentError, match=r"Namespace needs agent\.random, such as random\.R"):
        phone(Transition("x", Phone.POCKET, Phone.BROKEN, rate=1)).tick(
            SimpleNamespace(state=Phone.POCKET)
        )
    if rate != "often":
        assert f"a rate must be a finite number, 0 or more, got {float(rate)}" in caplog.text
