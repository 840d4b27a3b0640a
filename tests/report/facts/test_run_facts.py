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
from prism.report._facts.run_facts import MOST_CHARACTERS, facts_of

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


def test_first_states_come_first(logs: RunLogs) -> None:
    """The states that every agent begins with come first."""
    (facts,), _ = facts_of(logs)
    assert facts.state_names[:4] == ["idle", "scrolling", "evaluating", "composing"]


def test_states_are_sorted_by_their_numbers(write_log: Callable[..., Path], make: Any) -> None:
    """State 10 comes after state 9."""
    (facts,), _ = facts_of(
        read_log(
            write_log([make.move("ada", "state 10", "state 9"), make.move("ada", "state 9", "s")])
        )
    )
    assert facts.state_names == ["s", "state 9", "state 10"]


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
