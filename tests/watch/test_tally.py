"""Counts of a log that is read block by block, held against the tables of its analysis."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from prism.analysis import read_log
from prism.runlog._reader import Block
from prism.runs import RunStatus
from prism.watch._facts import blank_facts, counted_facts, states_at
from prism.watch._tally import Tally
from prism.watch._views import Views
from prism.watch._watched import Watched
from tests.kit.tables import costs, decisions, faults, measures, state_counts, transition_counts
from tests.kit.waiting import wait_until


def tally_of(path: Path, cuts: list[int] | None = None) -> Tally:
    """Count a log in blocks that end behind some of its lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    ends = sorted({*(cut % (len(lines) + 1) for cut in cuts or []), len(lines)} - {0})
    tally, begin, offset = Tally(path, "x"), 0, 0
    for end in ends:
        data = b"".join(lines[begin:end])
        tally.take(Block(data, begin + 1, end - begin), offset)
        begin, offset = end, offset + len(data)
    tally.index.close()
    return tally


@pytest.fixture(scope="module")
def whole(run: tuple[Path, Any]) -> Tally:
    """Return the counts of the real run's log, read in one block."""
    return tally_of(run[0] / "events.jsonl")


def test_transitions_are_those_of_the_analysis(folder: Path) -> None:
    """Transitions are those of the analysis."""
    found = tally_of(folder / "events.jsonl").table("traffic")
    keys = ["from_state", "to_state", "trigger"]
    own = found.group_by(keys).agg(pl.col("count").sum()).sort(keys)
    wanted = transition_counts(read_log(folder)).select(*keys, "count").sort(keys)
    assert_frame_equal(own, wanted)


@given(st.lists(st.integers(0, 10_000), max_size=6))
@pytest.mark.slow
def test_counts_are_the_same_wherever_blocks_end(
    run: tuple[Path, Any], whole: Tally, cuts: list[int]
) -> None:
    """Counts are the same wherever blocks end."""
    parts = tally_of(run[0] / "events.jsonl", cuts)
    assert parts.ends == whole.ends
    assert parts.begins == whole.begins
    assert parts.events() == whole.events()
    assert_frame_equal(parts.table("traffic"), whole.table("traffic"), check_row_order=False)
    assert_frame_equal(parts.table("asked"), whole.table("asked"), check_row_order=False)


def test_decisions_costs_faults_and_measures_are_those_of_the_analysis(
    write_log: Callable[..., Path], make: Any
) -> None:
    """Decisions costs faults and measures are those of the analysis."""
    events = [make.started(), make.joined("a", "x"), make.joined("b", "x")]
    for number in range(1, 4):
        for source in ("policy", "model", "fallback"):
            asked = {"model": "m", "latency": 0.5, "attempts": 2, "input_tokens": number}
            told = asked if source != "policy" else {}
            event = make.decision(
                "a", ["x", "y"], "y", state="x", source=source, reason="late", **told
            )
            events.append({**event, "round": number, "tick": 1})
        ended = {"states": {"x": 1, "y": 1}, "measures": {"heat": number / 2, "odd": number % 2}}
        events.append({"event": "round.ended", "timestamp": "t", "round": number, **ended})
    path = write_log(events)
    watched = Watched(path, "x")
    try:
        wait_until(lambda: watched.counted == path.stat().st_size)
        blank = blank_facts(watched)
        assert blank is not None
        facts = counted_facts(blank, watched)
    finally:
        watched.close()

    logs = read_log(path)
    shared = ["round", "asked", "answered", "from_model", "from_policy", "from_fallback"]
    wanted = decisions(logs, by=["round"])
    assert_frame_equal(facts.by_round.select(shared), wanted.select(shared))
    assert facts.by_round["input_tokens"].to_list() == wanted["input_tokens"].to_list()
    names = ["model", "answers", "calls", "input_tokens"]
    assert_frame_equal(facts.costs.select(names), costs(logs).select(names))
    assert_frame_equal(facts.faults, faults(logs), check_dtypes=False)
    assert_frame_equal(facts.measures, measures(logs))


def test_agents_in_a_round_that_goes_on_are_counted_from_the_last_end(
    write_log: Callable[..., Path], make: Any
) -> None:
    """Agents in a round that goes on are counted from the last end."""

    def at(number: int, event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "round": number, "tick": 1}

    lines = [make.started(), make.joined("a", "x"), make.joined("b", "x"), make.joined("c", "y")]
    first = tally_of(write_log([at(0, line) for line in lines]))
    assert states_at(first, None) == {"x": 2, "y": 1}

    lines += [at(1, make.move("a", "x", "y", trigger="go"))]
    assert states_at(tally_of(write_log(lines)), 1) == {"x": 1, "y": 2}

    ended = {"event": "round.ended", "timestamp": "t", "round": 1, "states": {"x": 1, "y": 2}}
    lines += [ended, at(1, make.move("a", "y", "x", trigger="round_ends"))]
    assert states_at(tally_of(write_log(lines)), 1) == {"x": 1, "y": 2}

    lines += [at(2, make.move("c", "y", "z", trigger="go"))]
    assert states_at(tally_of(write_log(lines)), 2) == {"x": 2, "y": 0, "z": 1}


@pytest.mark.parametrize("cuts", [[], [3, 6, 9]])
@pytest.mark.sampled(2)
def test_agents_of_a_loop_of_ones_own_are_counted_as_in_the_analysis(
    cuts: list[int], write_log: Callable[..., Path], make: Any
) -> None:
    """Such a log has neither agents that join nor ends of rounds, only what moves."""
    ring = ["x", "y", "z"]
    lines = [make.started()] + [
        {**make.move(agent, ring[step % 3], ring[(step + 1) % 3], trigger="go"), **at}
        for number in range(1, 5)
        for at in [{"round": number, "tick": 1}]
        for agent, step in [("a", number), ("b", number + 1), ("c", number + 1)][: 5 - number]
    ]
    path = write_log(lines)
    tally, wanted = tally_of(path, cuts), state_counts(read_log(path))
    for number in range(1, 5):
        rows = wanted.filter(round=number).select("state", "agents").iter_rows()
        assert {key: each for key, each in states_at(tally, number).items() if each} == {
            key: each for key, each in rows if each
        }


@pytest.mark.parametrize(
    "line",
    [b"{", b"\x00\xff\n", b"[1]", b'"text"', b'{"event": 5}', b"", b'{"event":"round.ended"}'],
)
@pytest.mark.sampled(8)
def test_a_damaged_line_is_left_out_and_nothing_else(
    folder: Path, tmp_path: Path, line: bytes
) -> None:
    """A damaged line is left out and nothing else."""
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    lines.insert(len(lines) // 2, line)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    tally, sound = tally_of(path), tally_of(folder / "events.jsonl")
    assert_frame_equal(tally.table("traffic"), sound.table("traffic"), check_row_order=False)
    assert tally.ends == sound.ends


@pytest.mark.slow
def test_a_growing_log_is_read_whole_again_after_a_rest(
    write_log: Callable[..., Path], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In between, counts stand for it; what the report draws comes when the run has ended."""
    lines = [make.started(), make.joined("a", "x"), make.joined("b", "x")]
    moved = {**make.move("a", "x", "y", trigger="go"), "round": 1, "tick": 1}
    ended = {"event": "round.ended", "timestamp": "t", "round": 1, "states": {"x": 1, "y": 1}}
    path = write_log(lines)
    status = RunStatus(path, "running")
    monkeypatch.setattr("prism.watch._watched.run_status", lambda _: status)
    watched = Watched(path, "x")

    def drawn() -> tuple[bool, str]:
        view = views.over_time().to_json()
        return view["due"] > 0, orjson.dumps(view).decode()

    try:
        views = Views(watched, rest=1e9)
        wait_until(lambda: watched.status == status and watched.counted)
        assert drawn()[0]  # from its beginning, a run is not slowed down
        views.rest = 0
        assert not drawn()[0]
        views.rest = 1e9

        write_log([*lines, moved, ended])
        wait_until(lambda: 1 in watched.tally.ends)
        waits, page = drawn()
        assert waits
        assert '"y"' in page

        status = RunStatus(path, "complete")
        wait_until(lambda: watched.status == status)
        waits, page = drawn()
        assert not waits
        assert page == orjson.dumps(Views(watched).over_time().to_json()).decode()
    finally:
        watched.close()


def test_a_long_log_is_read_once_its_last_counts_are_shown(
    write_log: Callable[..., Path], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page asks first is not held up by the rest of a long log."""
    monkeypatch.setattr("prism.watch._watched.MOST_READ_WHOLE", 0)
    ended = {"event": "round.ended", "timestamp": "t", "round": 7, "states": {"x": 1}}
    moved = {**make.move("a", "y", "x", trigger="go"), "round": 7, "tick": 1}
    path = write_log([make.started(), make.joined("a", "x"), moved, ended])
    watched = Watched(path, "x")
    try:
        assert watched.head()["ended"] == 7
        sections = Views(watched).of_round(7).to_json()["sections"]
        (chart,) = (each["html"] for each in sections if each["anchor"] == "chart")
        assert "1 agent" in chart.partition('data-state="x"')[2]
        assert watched.counted == 0
        watched.shown.set()
        wait_until(lambda: watched.counted == path.stat().st_size)
    finally:
        watched.close()
