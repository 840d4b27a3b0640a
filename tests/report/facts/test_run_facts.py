"""The facts that a report is made of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from prism.analysis import (
    RunLogs,
    cascades,
    decisions,
    dwell_times,
    engagement,
    read_log,
    state_counts,
    timeouts,
    transition_counts,
)
from prism.drawing import Arrow, Diagram
from prism.report._facts.run_facts import MOST_CHARACTERS, facts_of
from prism.statechart import social_media_chart
from prism.statechart.formats._export import to_diagram

TABLES: dict[str, Callable[[RunLogs], pl.DataFrame]] = {
    "states": state_counts,
    "transitions": transition_counts,
    "dwelling": dwell_times,
    "timeouts": timeouts,
    "decisions": decisions,
    "by_round": lambda logs: decisions(logs, by=["round"]),
    "chosen": lambda logs: decisions(logs, by=["round", "chosen"]),
    "engagement": engagement,
    "cascades": cascades,
}


def test_facts_are_those_of_the_analysis(model_log: Path) -> None:
    """Every table of a run is that of prism.analysis."""
    logs = read_log(model_log)
    (facts,), notes = facts_of(logs)
    for name, make in TABLES.items():
        assert_frame_equal(getattr(facts, name), make(logs))
    assert (facts.run, notes) == (logs.runs[0], logs.notes)


def test_facts_of_a_run_are_the_same_beside_another(folder: Path, model_log: Path) -> None:
    """Beside another run, a run has the same facts as alone."""
    together, _ = facts_of(read_log(folder, model_log))
    for facts, path in zip(together, (folder, model_log), strict=True):
        (alone,), _ = facts_of(read_log(path))
        for name in TABLES:
            assert_frame_equal(getattr(facts, name), getattr(alone, name))
        assert [tree[0] for tree in facts.trees] == [tree[0] for tree in alone.trees][
            : len(facts.trees)
        ]
        assert facts.run.label == alone.run.label


def test_states_are_in_the_order_of_their_chart(logs: RunLogs) -> None:
    """Where the chart is known, its states come in the order of their definition."""
    chart = to_diagram(social_media_chart().definition)
    for known in ({"charts": [chart]}, {"familiar": [chart]}):
        (facts,), _ = facts_of(logs, **known)
        assert tuple(facts.state_names) == chart.states


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


def test_states_of_an_unknown_chart_come_as_they_appear(
    write_log: Callable[..., Path], make: Any
) -> None:
    """The state that most agents began in is the first; the others follow as in the log."""
    moves = [make.move("ada", "b 10", "b 9"), make.move("ada", "b 9", "a")]
    (facts,), _ = facts_of(read_log(write_log(moves)))
    assert (facts.state_names, facts.initial) == (["b 10", "b 9", "a"], "b 10")

    joins = [make.joined("late", "b 9"), make.joined("ada", "a"), make.joined("bo", "a")]
    (facts,), _ = facts_of(read_log(write_log([*joins, *moves])))
    assert (facts.state_names, facts.initial) == (["a", "b 9", "b 10"], "a")


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


def test_long_and_broken_texts_are_cut(hostile_log: Path) -> None:
    """Texts are cut to what can be shown, and have no character that XML lacks."""
    (facts,), _ = facts_of(read_log(hostile_log))
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
