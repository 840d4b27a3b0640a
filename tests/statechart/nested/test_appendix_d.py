"""The engine against Appendix D of the SCXML recommendation, transcribed, over random charts."""

from __future__ import annotations

from random import Random

import pytest

from prism.errors import RunawayError
from prism.statechart import History, State, Statechart, Transition
from tests.statechart.nested.phone import Owner, Phone
from tests.statechart.nested.random_charts import EVENTS, make_twins


def compare(seed: int, events: int = 20) -> int:
    """Run one chart both ways; return how many exits, entries and actions were compared."""
    twins = make_twins(seed)
    rng = Random(seed)
    known = [event for event in EVENTS if event in twins.chart.triggers] or ["a"]
    chart, agent, interpreter = twins.chart, twins.agent, twins.interpreter
    try:
        interpreter.interpret()
    except RecursionError:
        # what it does until then is compared with nothing
        with pytest.raises(RunawayError):
            chart.begin(agent)
        return 0

    chart.begin(agent)
    for number in range(events):
        event = rng.choice(known)
        interpreter.microsteps = 0
        try:
            enabled = interpreter.send(event)
        except RecursionError:
            with pytest.raises(RunawayError):
                chart.fire(agent, event)
            break
        made = chart.fire(agent, event)
        assert twins.trace == interpreter.trace, (seed, number, event)
        assert tuple(str(agent.state).split("+")) == interpreter.leaves(), (seed, number, event)
        assert (made is not None) == enabled

    return len(twins.trace)


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.sampled(10, long=4)
def test_a_random_chart_does_what_appendix_d_says(seed: int) -> None:
    """Leaves, and the order of exits, actions and entries, are the same."""
    compare(seed)


def test_a_step_may_lead_where_no_agent_can_be_put() -> None:
    """Appendix D may reach leaves that are no configuration; the engine goes on from there, too."""
    assert compare(1301) > 0


@pytest.mark.parametrize(
    "block",
    [pytest.param(n, marks=pytest.mark.long if n % 15 else pytest.mark.slow) for n in range(30)],
)
def test_thousands_of_random_charts_do_what_appendix_d_says(block: int) -> None:
    """The same for 3,000 further charts."""
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        compare(seed)


def test_an_initial_history_leads_first_to_the_initial_state_of_its_composite() -> None:
    """Of a composite that lies deeper, too."""
    inner = State(Phone.READING, [Phone.SENT, Phone.BROKEN], initial=Phone.BROKEN)
    outer = State(Phone.ENGAGING, [inner], initial=History(Phone.READING))
    opens = Transition("opens", Phone.POCKET, Phone.ENGAGING)
    chart = Statechart([Phone.POCKET, outer], [opens], Phone.POCKET)
    assert chart.fire(Owner(), "opens") is Phone.BROKEN
