"""How far choices lie apart: against scipy, and where nothing differs."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("statsmodels")


from prism.analysis import read_log
from prism.errors import FieldValueError
from prism.science import calibrate, divergence
from tests.kit.choosing import CONTRIBUTOR, LURKER, by_shares, drawn, logged
from tests.kit.later import Later

distance = Later("scipy.spatial.distance")

Write = Callable[..., Path]

COUNTS = {"lurker": (10, 30, 60), "contributor": (50, 30, 20)}
OTHERS = {"lurker": (20, 30, 50), "contributor": (55, 25, 20)}


def test_the_divergence_is_that_of_scipy(write_log: Write) -> None:
    """Each level has the squared Jensen-Shannon distance, base 2, of the two distributions."""
    model = read_log(write_log(logged(by_shares(COUNTS)), "a.jsonl"))
    other = read_log(write_log(logged(by_shares(OTHERS)), "b.jsonl"))
    table = divergence(model, other, splits=20)
    found = dict(table.select("level", "divergence").iter_rows())
    for group in COUNTS:
        assert found[group] == pytest.approx(
            distance.jensenshannon(COUNTS[group], OTHERS[group], 2) ** 2
        )
    assert found["all"] == pytest.approx(distance.jensenshannon((60, 60, 80), (75, 55, 70), 2) ** 2)

    smoothed = divergence(model, other, splits=1, smoothing=1).filter(level="lurker")
    assert smoothed["divergence"][0] == pytest.approx(
        distance.jensenshannon((11, 31, 61), (21, 31, 51), 2) ** 2
    )


@pytest.mark.slow
def test_points_of_decision_are_weighed_by_the_models_decisions(write_log: Write) -> None:
    """Over several states the divergences are averaged, with the model's numbers as weights."""
    rows = {
        name: list(by_shares({"lurker": counts}))
        for name, counts in (("a", (10, 10, 10)), ("b", (40, 40, 10)), ("c", (10, 10, 40)))
    }
    elsewhere = [{**row, "state": "resting"} for row in rows["b"]]
    model = read_log(write_log(logged([*rows["a"], *elsewhere]), "a.jsonl"))
    other = [{**row, "state": "resting"} for row in rows["b"]]
    table = divergence(model, read_log(write_log(logged([*rows["c"], *other]), "b.jsonl")))
    expected = distance.jensenshannon((1, 1, 1), (1, 1, 4), 2) ** 2 * 30 / 120
    assert table["divergence"][0] == pytest.approx(expected)


@pytest.mark.slow
def test_a_policy_that_fits_stays_at_the_floor(write_log: Write) -> None:
    """Shares calibrated on half of the agents differ from the rest as halves of the model do."""
    rows = drawn({"lurker": LURKER, "contributor": CONTRIBUTOR}, 300, seed=4)
    logs = read_log(write_log(logged(rows)))
    table = divergence(logs).filter(by="archetype")
    assert table["above"].to_list() == [False, False]
    assert table["halves"].to_list() == pytest.approx(table["floor"].to_list(), rel=0.8)


@pytest.mark.slow
def test_a_policy_of_another_behaviour_is_above_the_floor(write_log: Write) -> None:
    """A policy that was calibrated on somebody else is found out, outside of its interval."""
    logs = read_log(write_log(logged(drawn({"lurker": LURKER}, 400, seed=5)), "a.jsonl"))
    wrong = drawn({"lurker": CONTRIBUTOR}, 400, seed=5)
    policy = calibrate(read_log(write_log(logged(wrong), "b.jsonl")))
    row = divergence(logs, policy).filter(level="lurker").row(0, named=True)
    assert row["above"]
    assert row["low"] < row["divergence"] < row["high"]
    assert row["floor"] < row["low"]


def test_agents_that_are_alike_are_at_the_floor(write_log: Write) -> None:
    """What differs by rounding alone does not differ, whether as a policy or as halves."""
    logs = read_log(write_log(logged(by_shares({"lurker": (10, 30, 20)}))))
    (row,) = divergence(logs, "markov", splits=40).filter(by="archetype").to_dicts()
    assert [row[name] for name in ("divergence", "halves", "floor_high")] == [0, 0, 0]
    assert not row["above"]


@pytest.mark.slow
def test_one_agent_has_no_floor(write_log: Write) -> None:
    """A level with one agent has neither a floor nor an interval, and no verdict."""
    rows = [{**row, "agent_id": "only"} for row in by_shares({"lurker": (10, 10, 10)})]
    row = divergence(read_log(write_log(logged(rows)))).row(0, named=True)
    assert [row[name] for name in ("floor", "low", "high", "above")] == [None] * 4


def test_impossible_numbers_are_refused(write_log: Write) -> None:
    """There is one bin and one split at least, and nothing is taken from a count."""
    logs = read_log(write_log(logged(by_shares(COUNTS))))
    with pytest.raises(FieldValueError, match="bins"):
        divergence(logs, bins=0)
    with pytest.raises(FieldValueError, match="smoothing"):
        divergence(logs, smoothing=-1)


@pytest.mark.long
def test_the_floor_is_exceeded_as_seldom_as_it_says(write_log: Write) -> None:
    """Two runs of one behaviour are above the floor in a few of a hundred cases."""
    above = 0
    for seed in range(60):
        model, other = (
            read_log(write_log(logged(drawn({"lurker": LURKER}, 300, number)), f"{number}.jsonl"))
            for number in (2 * seed, 2 * seed + 1)
        )
        above += bool(divergence(model, other)["above"][0])

    assert above <= 6
