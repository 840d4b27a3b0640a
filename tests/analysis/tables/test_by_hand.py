"""Tables of logs of every kind, beside what a plain reading of their lines gives."""

from collections import Counter, defaultdict
from functools import cache
from math import log2
from pathlib import Path
from statistics import mean

import pytest

from prism.analysis import Log, read_log
from tests.kit.logs import events_in
from tests.kit.make import Event

RUNS = ["feed", "leaving", "model", "market", "regions", "births", "workflow", "thinking"]
"""The last two have no ticks."""
STEPS = ("agent.joined", "statechart.transition", "agent.left")

Both = tuple[Log, list[Event]]


@cache
def opened(path: Path) -> Both:
    return read_log(path), events_in(path)


@pytest.fixture
def both(request: pytest.FixtureRequest, logs: dict[str, Path]) -> Both:
    """Return a log opened, and its events as a plain reading has them."""
    return opened(logs[request.param])


every_log = pytest.mark.parametrize("both", RUNS, indirect=True)


def named(events: list[Event], *names: str) -> list[Event]:
    return [event for event in events if event["event"] in names]


def closes(event: Event, ticks: int | None) -> bool:
    """Return whether a transition closes its round, so that it counts in the next tick."""
    ends_act = event.get("trigger") in ("compose_done", "action_done")
    is_short = event.get("ticks_in_state") == 0 and event.get("tick") == ticks
    return event.get("trigger") == "round_ends" or (ends_act and is_short)


def moment_of(event: Event, ticks: int | None) -> tuple[int, int, bool]:
    """Return when a step counts: its round, its tick, and whether after that tick."""
    number, tick = event.get("round") or 0, event.get("tick") or 0
    comes_or_goes = event["event"] != "statechart.transition" and number > 0
    return number, max(tick, 1) if comes_or_goes else tick, closes(event, ticks)


def target(event: Event) -> str:
    return str(event.get("to_state") or ("" if event["event"] == "agent.left" else event["state"]))


@every_log
@pytest.mark.sampled(2)
def test_transitions(both: Both) -> None:
    """Each kind is counted, and has its share of those that leave the state in its chart."""
    log, events = both
    moves = named(events, "statechart.transition")
    kinds = Counter((m["chart"], m["from_state"], m["to_state"], m["trigger"]) for m in moves)
    leaving = Counter((move["chart"], move["from_state"]) for move in moves)
    rows = log.sql(
        "select chart, from_state, to_state, trigger, count, probability from transitions"
    )
    assert {row[:4]: row[4:] for row in rows.fetchall()} == {
        kind: (count, pytest.approx(count / leaving[kind[:2]])) for kind, count in kinds.items()
    }


@pytest.mark.parametrize("both", RUNS[:6], indirect=True)
@pytest.mark.sampled(2)
def test_states_at_every_tick(both: Both) -> None:
    """Agents are where their steps have brought them by the end of the tick."""
    log, events = both
    rows = log.sql("select round, tick, state, agents, share from states").fetchall()
    found: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    shares = Counter[tuple[int, int]]()
    for number, tick, state, agents, share in rows:
        if agents and tick is not None:
            where = found[number, tick]
            where[state] = where.get(state, 0) + agents
            shares[number, tick] += share
    ticks = next((each.get("ticks_per_round") for each in events), None)
    steps = [(moment_of(step, ticks), step) for step in named(events, *STEPS)]
    charts = {step.get("chart") for step in named(events, "statechart.transition")}
    assert found
    for moment, counts in found.items():
        at = {step["agent_id"]: target(step) for place, step in steps if place <= (*moment, False)}
        assert counts == dict(Counter(filter(None, at.values()))), moment
        assert shares[moment] == pytest.approx(len(charts))


@every_log
@pytest.mark.sampled(2)
def test_visits_by_their_end(both: Both) -> None:
    """A visit ends with a transition or as its agent leaves, is cut by a round, or stays open."""
    log, events = both
    ticks = next((each.get("ticks_per_round") for each in events), None)
    ends, last = defaultdict[str, Counter[str]](Counter), dict[str, str]()
    for step in named(events, *STEPS):
        before = last.get(step["agent_id"], step.get("from_state"))
        if before is not None and step["event"] != "agent.joined":
            ends[before]["cut" if closes(step, ticks) else "complete"] += 1
        last[step["agent_id"]] = target(step)
    for state in filter(None, last.values()):
        ends[state]["open"] += 1
    rows = log.sql("select state, sum(complete), sum(cut), sum(open) from dwell group by state")
    assert {state: ended for state, *ended in rows.fetchall()} == {
        state: [each["complete"], each["cut"], each["open"]] for state, each in ends.items()
    }


@every_log
@pytest.mark.sampled(2)
def test_decisions(both: Both) -> None:
    """Decisions by state: asked, fallbacks, first of the list, entropy in bits."""
    log, events = both
    by_state = defaultdict[str, list[Event]](list)
    for event in named(events, "reasoner.decision"):
        by_state[event["state"]].append(event)
        assert event["chart"] in {step["chart"] for step in named(events, "statechart.transition")}
    table = log.sql("from decisions_by(['state'])")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
    assert {row["state"] for row in rows} == {*by_state}
    for row in rows:
        own = by_state[row["state"]]
        assert (row["asked"], row["from_fallback"]) == (
            len(own),
            sum(each["source"] == "fallback" for each in own),
        )
        by_model = [each for each in own if each["source"] == "model"]
        first = [each["options"][0] == each["chosen"] for each in by_model]
        assert row["chosen_first"] == (pytest.approx(mean(first)) if first else None)
        chances = [each["probabilities"].values() for each in own if each.get("probabilities")]
        bits = [-sum(p * log2(p) for p in each if p) for each in chances]
        assert row["entropy"] == (pytest.approx(mean(bits), rel=1e-4) if bits else None)


@every_log
@pytest.mark.sampled(2)
def test_agents(both: Both) -> None:
    """Every agent has its last state, and what it did, counted."""
    log, events = both
    where = {step["agent_id"]: target(step) for step in named(events, *STEPS[:2])}
    names = ("statechart.transition", "reasoner.decision")
    counts = {name: Counter(each["agent_id"] for each in named(events, name)) for name in names}
    rows = log.sql("select agent_id, state, transitions, decisions from agents").fetchall()
    assert {row[0]: row[1:] for row in rows} == {
        agent: (state, *(counts[name][agent] for name in names)) for agent, state in where.items()
    }


@every_log
@pytest.mark.sampled(2)
def test_what_was_measured_and_went_wrong(both: Both) -> None:
    """Measures and fallbacks are those of the lines."""
    log, events = both
    measured = [
        (event["round"], name, None if value is None else float(value))
        for event in named(events, "round.ended")
        for name, value in (event.get("measures") or {}).items()
    ]
    rows = log.sql("select round, measure, value from measures").fetchall()
    assert sorted(rows, key=repr) == sorted(measured, key=repr)
    fallbacks = [
        each for each in named(events, "reasoner.decision") if each["source"] == "fallback"
    ]
    wrong = log.sql("select sum(count), sum(agents) from faults where fault = 'fallback'")
    assert wrong.fetchall()[0][0] == (len(fallbacks) or None)
