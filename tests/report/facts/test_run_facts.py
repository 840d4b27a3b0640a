"""The facts of runs, and logs that are parsed once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from prism.analysis import Log, read_log
from prism.drawing import Arrow, Diagram
from prism.report import Report
from prism.report._facts.run_facts import MOST_CHARACTERS, facts_of, parsed_once
from prism.statechart import social_media_chart
from prism.statechart.outline import to_outline
from tests.kit.tables import cascades, decisions, dwell_times, state_counts, transition_counts

TABLES: dict[str, Callable[[Log], pl.DataFrame]] = {
    "states": state_counts,
    "transitions": transition_counts,
    "dwelling": dwell_times,
    "decisions": decisions,
    "by_round": lambda logs: decisions(logs, by=["round"]),
    "chosen": lambda logs: decisions(logs, by=["round", "chosen"]),
    "cascades": cascades,
}


@pytest.mark.slow
def test_facts_are_those_of_the_analysis(model_log: Path, side_by_side: Report) -> None:
    """Every table of a run is that of prism.analysis, also beside another run."""
    logs, facts = read_log(model_log), side_by_side.runs[1]
    for name, make in TABLES.items():
        assert_frame_equal(getattr(facts, name), make(logs))
    assert (facts.run, side_by_side.notes) == (logs.runs[0], logs.notes)


def test_states_are_in_the_order_of_their_chart(
    report: Report, write_log: Callable[..., Path], make: Any
) -> None:
    """Where the chart is known, its states come in the order of their definition."""
    familiar = to_outline(social_media_chart().definition)
    assert tuple(report.runs[0].state_names) == familiar.states
    given = Diagram(("c", "a", "b"), (Arrow("b", "c", ("go",)),), name="c")
    (facts,), _ = facts_of(read_log(write_log([make.move("ada", "a", "b")])), [given])
    assert tuple(facts.state_names) == given.states


@pytest.mark.slow
def test_a_familiar_chart_must_have_all_transitions(
    write_log: Callable[..., Path], make: Any
) -> None:
    """A chart that only has the name of a run's chart is not taken for it, unless it is given."""
    log = read_log(write_log([make.move("ada", "x", "y"), make.move("ada", "y", "x", "back")]))
    chart = Diagram(("y", "x"), (Arrow("x", "y", ("go",)),), name="c")
    (facts,), _ = facts_of(log, familiar=[chart])
    assert (facts.state_names, facts.charts) == (["x", "y"], {})
    (facts,), _ = facts_of(log, charts=[chart])
    assert (facts.state_names, facts.charts) == (["y", "x"], {"c": chart})


@pytest.mark.slow
def test_states_of_an_unknown_chart_come_as_they_appear(
    write_log: Callable[..., Path], make: Any
) -> None:
    """The state that most agents began in is the first; the others follow as in the log."""
    moves = [make.move("ada", "b 10", "b 9"), make.move("ada", "b 9", "a")]
    joins = [make.joined("late", "b 9"), make.joined("ada", "a"), make.joined("bo", "a")]
    logs = write_log(moves, "moves.jsonl"), write_log([*joins, *moves], "joins.jsonl")
    (moved, joined), _ = facts_of(read_log(*logs))
    assert (moved.state_names, moved.initial) == (["b 10", "b 9", "a"], "b 10")
    assert (joined.state_names, joined.initial) == (["a", "b 9", "b 10"], "a")


@pytest.mark.slow
def test_states_of_a_chart_are_named_as_in_the_tables(
    write_log: Callable[..., Path], make: Any
) -> None:
    """A state whose name cannot be shown in full is the same in the chart and in the log."""
    long, broken = "x" * 300, "a\x00b"
    chart = Diagram((broken, long), (Arrow(broken, long, ("go",)),), initial=broken, name="c")
    log = read_log(write_log([make.move("ada", broken, long)]))
    (facts,), _ = facts_of(log, charts=[chart])
    assert tuple(facts.state_names) == facts.charts["c"].states
    assert len(facts.state_names) == 2


@pytest.mark.slow
def test_long_and_broken_texts_are_cut(hostile: Report) -> None:
    """Texts are cut to what can be shown, and have no character that XML lacks."""
    (facts,) = hostile.runs
    texts = [
        text
        for table in (
            facts.states,
            facts.transitions,
            facts.agents,
            facts.cascades,
            facts.reasons,
            facts.decisions,
        )
        for name in table.columns
        if table.schema[name] == pl.String
        for text in table[name].drop_nulls()
    ]
    assert max(map(len, texts)) == MOST_CHARACTERS + 1
    assert any("\ufffd" in text for text in texts)
    assert not any("\x00" in text or "\ufffe" in text for text in texts)


@pytest.mark.slow
def test_facts_take_any_names(write_log: Callable[..., Path], make: Any) -> None:
    """Names and contexts may have quotes, backslashes and line feeds; notes are kept."""
    name = 'say "hi" \\ \n'
    about = {"context": {name: name}}
    lines = [
        make.decision(
            "ada", [name, "b"], name, probabilities={name: 0.5, "b": 0.5}, state=name, **about
        ),
        make.move("ada", "a", name, **about),
        make.move("ada", "a", name, context="free text"),
    ]
    (facts,), notes = facts_of(read_log(write_log(lines)))
    assert facts.decisions.select("state", "entropy").rows() == [(name, 1.0)]
    assert facts.states.filter(pl.col("agents") > 0).select("state", "agents").rows() == [(name, 1)]
    assert [note.kind for note in notes] == ["broken_chain"]


@pytest.mark.parametrize("most_bytes", [1 << 30, 60_000, 0])
@pytest.mark.slow
def test_parsed_logs_give_the_same_tables(logs: Log, most_bytes: int) -> None:
    """Every table equals that of the log, with events in memory, in files, or in both."""
    with parsed_once(logs, most_bytes) as parsed:
        for make in (state_counts, transition_counts, cascades):
            assert_frame_equal(make(parsed), make(logs), check_row_order=True)
        assert (parsed.runs, parsed.notes) == (logs.runs, logs.notes)


@pytest.mark.parametrize("most_bytes", [1 << 30, 0])
def test_the_log_is_read_once(folder: Path, tmp_path: Path, most_bytes: int) -> None:
    """After the first table the log itself is not needed any more."""
    copy = tmp_path / "events.jsonl"
    copy.write_bytes((folder / "events.jsonl").read_bytes())
    with parsed_once(read_log(copy), most_bytes) as parsed:
        first = transition_counts(parsed)
        copy.unlink()
        assert_frame_equal(transition_counts(parsed), first)
        assert len(parsed.runs) == 1


def test_temporary_files_are_deleted(
    logs: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events beyond the bytes of memory go to temporary files, which are deleted."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with parsed_once(logs, 0) as parsed:
        state_counts(parsed)
        assert list(tmp_path.rglob("*.arrow"))
    assert not list(tmp_path.iterdir())
