"""Designs: each arm of a batch against its control, in pairs of the same parameters and seed."""

from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import Batch, Plan, batch, compare
from tests.kit.commands import Prism
from tests.kit.later import Later

pl = pytest.importorskip("polars")
pytest.importorskip("altair")
pytest.importorskip("statsmodels")

formulas = Later("statsmodels.formula.api")

FACTORIAL: dict[str, Any] = {
    "world": "rumour",
    "agents": 16,
    "rounds": 5,
    "seeds": 4,
    "vary": {"friends": [2, 6], "tiring": [0.1, 0.9]},
    "arm": [{"name": "plain"}, {"name": "warned", "treatments": ["warning@2"]}],
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """Return a batch of two arms and two parameters."""
    return batch(Plan(FACTORIAL), tmp_path_factory.mktemp("design") / "out", workers=1)


def gaps(done: Batch, **levels: Any) -> list[float]:
    """Return the difference of the arms for each seed, averaged over all other parameters."""
    rows = done.results().filter(**levels).group_by("seed", "arm").agg(pl.col("reached").mean())
    table = rows.pivot("arm", index="seed", values="reached").sort("seed")
    return list(table["warned"] - table["plain"])


@pytest.mark.slow
def test_each_arm_is_compared_with_its_control_at_each_setting(done: Batch) -> None:
    """Pairs have the same parameters and the same seed."""
    found = compare(done.folder)
    assert [group.label for group in found.groups] == ["plain", "warned"]
    assert [row.setting for row in found.differences] == [
        *("friends=2, tiring=0.1", "friends=2, tiring=0.9"),
        *("friends=6, tiring=0.1", "friends=6, tiring=0.9"),
    ]
    for row, levels in zip(
        found.differences, ((2, 0.1), (2, 0.9), (6, 0.1), (6, 0.9)), strict=True
    ):
        own = gaps(done, friends=levels[0], tiring=levels[1])
        assert (row.measure, row.paired, row.runs_first) == ("reached", True, 4)
        assert row.difference == pytest.approx(sum(own) / 4)


@pytest.mark.slow
def test_what_is_not_within_is_averaged_by_seed(done: Batch) -> None:
    """The unit stays the seed: runs that share their random numbers are not counted twice."""
    within = compare(done.folder, within=["friends"])
    assert [row.setting for row in within.differences] == ["friends=2", "friends=6"]
    assert [row.runs_first for row in within.differences] == [4, 4]
    own = gaps(done, friends=6)
    assert within.differences[1].difference == pytest.approx(sum(own) / 4)

    by = compare(done.folder, by="friends", within=[])
    assert [group.label for group in by.groups] == ["friends=2", "friends=6"]
    assert [(row.setting, row.runs_first) for row in by.differences] == [("", 4)]


@pytest.mark.slow
def test_tables_alone_are_compared_as_logs_are(done: Batch, tmp_path: Path) -> None:
    """Where no log is kept, measures come from the tables, and are the same."""
    tables = batch(done.plan, tmp_path / "out", keep="tables", workers=2).folder
    names = ["reached", "reached_mean", "transitions"]
    one, other = (compare(each, measures=names) for each in (done.folder, tables))
    assert one.table().equals(other.table())
    # a share of states is in logs alone
    logs = compare(done.folder, measures=[*names, "share_spreader"])
    assert logs.table().filter(measure="reached").equals(one.table().filter(measure="reached"))
    with pytest.raises(InputError, match="unknown measure"):
        compare(tables, measures=["share_spreader"])


@pytest.mark.slow
def test_a_factor_that_nothing_varies_is_refused(done: Batch) -> None:
    """The factors that there are follow; runs without a plan have none."""
    with pytest.raises(InputError, match="names 'trust', but the runs vary arm, friends, tiring"):
        compare(done.folder, by="trust")
    with pytest.raises(InputError, match="'within': names 'x'"):
        compare(done.folder, within=["x"])
    first, second = (done.folder / run.name for run in done.runs[:2])
    with pytest.raises(InputError, match="is for a batch"):
        compare(first, second, by="arm")


@pytest.mark.slow
def test_rounds_are_drawn_at_each_setting_with_lines_at_treatments(
    done: Batch, tmp_path: Path
) -> None:
    """Runs with other parameters are not averaged in one curve, unless that is asked for."""
    found = compare(done.folder)
    rounds = found.rounds(["reached"])
    alone = done.rounds().filter(arm="warned", friends=6, tiring=0.1, round=5)["reached"].mean()
    at_setting = rounds.filter(group="warned", setting="friends=6, tiring=0.1", round=5)
    assert at_setting["mean"].item() == pytest.approx(alone)
    assert at_setting["runs"].item() == 4
    names = {path.stem: path for path in found.save_figures(tmp_path)}
    drawn = [names[f"rounds-{number}"].read_text() for number in (1, 2, 3, 4)]
    assert "rounds-5" not in names
    for text, setting in zip(drawn, rounds["setting"].unique(maintain_order=True), strict=True):
        assert f"Mean of reached in each round, {setting}" in text
        assert 'stroke-dasharray="4,3"' in text
    averaged = compare(done.folder, within=[]).rounds(["reached"])
    assert "setting" not in averaged.columns
    assert set(averaged["runs"]) == {16}


@pytest.mark.slow
def test_what_matters_most_stands_within_80_columns(
    done: Batch, prism: Prism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both means, the difference, its interval and p are there at each setting."""
    monkeypatch.setenv("COLUMNS", "80")
    ran = prism("compare", done.folder)
    lines = ran.out.splitlines()
    assert lines[0] == (
        "reached: warned against plain, in 4 pairs of the same seed at each setting"
    )
    heads = next(line for line in lines if line.startswith(" setting")).split()
    assert heads[:6] == ["setting", "plain", "warned", "difference", "interval", "p"]
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_runs_that_are_not_complete_are_left_out_with_a_note(done: Batch, tmp_path: Path) -> None:
    """A batch of which one run is missing is compared without it, and says how many there are."""
    cut = tmp_path / "cut"
    copytree(done.folder, cut)
    rmtree(cut / done.runs[0].name)
    found = compare(cut)
    text = f"1 of {len(done.runs)} runs are left out, since they are not complete"
    assert text in found.notes
    assert not any("left out, since" in note for note in compare(done.folder).notes)

    for run in done.runs:
        if run.configuration.arm == "warned":
            rmtree(cut / run.name, ignore_errors=True)
    said = "cut: there is nothing to compare: .*; no run of warned at friends=2"
    with pytest.raises(InputError, match=said):
        compare(cut)


@pytest.mark.slow
def test_arms_are_averaged_over_the_settings_that_both_have(done: Batch, tmp_path: Path) -> None:
    """Where one arm lacks a setting, the other's runs there are left out, and that is told."""
    cut = tmp_path / "cut"
    copytree(done.folder, cut)
    for run in done.runs:
        given = run.configuration
        if given.arm == "warned" and dict(given.parameters) == {"friends": 2, "tiring": 0.9}:
            rmtree(cut / run.name)

    found = compare(cut, within=["friends"])
    few, many = (gaps(done, friends=2, tiring=0.1), gaps(done, friends=6))
    assert [row.setting for row in found.differences] == ["friends=2", "friends=6"]
    assert found.differences[0].difference == pytest.approx(sum(few) / 4)
    assert found.differences[1].difference == pytest.approx(sum(many) / 4)
    note = "plain and warned are compared at 1 of 2 settings of the other factors, which both have"
    assert f"{note} at friends=2" in found.notes


MEASURED = """
from prism.examples.rumour import Person, Rumour
from prism.worlds import World, during, measure


class Own(Person):
    @measure
    def trusting(self) -> float:
        return self.trust


class Town(World[Own]):
    rounds = 1
    rate: float = 0.1

    @measure
    def everybody(self) -> int:
        return len(self.agents)
"""


@pytest.mark.slow
def test_runs_that_end_at_different_rounds_are_compared_with_a_note(tmp_path: Path) -> None:
    """Each run counts with its own last round, or not at all if that is too early; both is told."""
    plan = Plan({"world": "rumour", "agents": 9, "seeds": 2, "vary": {"rounds": [2, 4]}})
    folder = batch(plan, tmp_path / "out", workers=1).folder
    told = "the runs ended in rounds 2 to 4: each counts with its last round up to 4"
    assert told in compare(folder).notes
    cut = compare(folder, to_round=2).notes
    assert not any("ended" in note for note in cut)
    late = compare(folder, from_round=3).notes
    assert "2 of 4 runs are left out, since they ended before round 3" in late
    assert told not in late


@pytest.mark.slow
def test_measures_of_agents_are_compared_where_they_are_named(tmp_path: Path) -> None:
    """By default a batch compares the measures of worlds."""
    world = tmp_path / "own_measured.py"
    world.write_text(MEASURED)
    plan = {"world": str(world), "agents": 5, "seeds": 2, "vary": {"rate": [0.1, 0.2]}}
    batch(Plan(plan), tmp_path / "out", workers=1)
    found = compare(tmp_path / "out")
    assert {each.measure for each in found.differences} == {"everybody"}
    named = compare(tmp_path / "out", measures=["trusting_of_own"])
    assert {each.measure for each in named.differences} == {"trusting_of_own"}
