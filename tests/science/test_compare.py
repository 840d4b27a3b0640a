"""Comparisons of runs, from their logs to a page."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest

from prism import Run
from prism.errors import FieldValueError, InputError
from prism.examples.rumour import Rumour
from tests.kit.commands import Prism

pytest.importorskip("polars")
pytest.importorskip("altair")
pytest.importorskip("statsmodels")
pytest.importorskip("scipy")

from prism.analysis import read_log
from prism.science import Comparison, _compare, compare
from prism.science._comparison import Measured
from tests.kit.later import Later
from tests.kit.tables import measures

stats = Later("scipy.stats")

SEEDS = range(6)
BOTH = ("plain", "warned")
PARAMETERS = {"friends": 8, "rewired": 0.3}


@pytest.fixture(scope="module", autouse=True)
def measured_once() -> Iterator[None]:
    """Measure each run once for all comparisons: what is compared here stays as it was written."""
    measure = cache(_compare.measure_run)

    def measured(path: Path, *rounds: int | None) -> Measured:
        log = path / "events.jsonl" if path.is_dir() else path
        found = measure(log.resolve().parent, *rounds)
        return replace(found, run=replace(found.run, path=path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compare, "measure_run", measured)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs of the same seeds, half of them treated in round 2."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        for name in BOTH:
            treatments = ("warning@2",) if name == "warned" else ()
            options = Run(
                Rumour, 60, rounds=10, seed=seed, parameters=PARAMETERS, treatments=treatments
            )
            options.keep(folder / name / f"seed-{seed}")

    return folder


@pytest.fixture(scope="module")
def found(runs: Path) -> Comparison:
    """Return the comparison of all runs."""
    return compare(runs / "plain", runs / "warned")


def last(folder: Path, seed: int) -> float:
    """Return the last value of the world's measure."""
    return float(measures(read_log(folder / f"seed-{seed}"))["value"][-1])


@pytest.mark.slow
def test_pairs_are_compared_as_scipy_would(runs: Path, found: Comparison) -> None:
    """The world's own measure comes first, from its last round, in pairs of the same seed."""
    row = found.differences[0]
    first, second = ([last(runs / name, seed) for seed in SEEDS] for name in BOTH)
    assert (row.measure, row.kind, row.paired, row.runs_first) == ("reached", "own", True, 6)
    assert (row.mean_first, row.mean_second) == pytest.approx((sum(first) / 6, sum(second) / 6))
    moved = [b - a for a, b in zip(first, second, strict=True) if abs(b - a) > 1e-9]
    assert row.p == pytest.approx(
        stats.wilcoxon(moved, method=stats.PermutationMethod(n_resamples=10_000)).pvalue
    )
    expected = stats.ttest_rel(second, first)
    assert (row.low, row.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert row.t_p == pytest.approx(expected.pvalue)
    tested = [each for each in found.differences if each.p is not None]
    assert (
        min(each.p_holm for each in tested)
        >= min(1.0, min(each.p for each in tested) * len(tested)) - 1e-9
    )
    assert {each.remark for each in found.differences if each.test is None} == {
        "the same in every run"
    }
    assert any("no p-value below" in note for note in found.notes)


@pytest.mark.slow
def test_a_folder_of_groups_and_patterns_name_the_same_runs(runs: Path, found: Comparison) -> None:
    """The folders that hold runs are groups; a pattern names several runs of one."""
    below = compare(runs, measures=["reached"])
    pattern = str(runs / "war*" / "seed-[0-5]")
    assert [group.label for group in below.groups] == list(BOTH)
    assert below.differences[0].difference == found.differences[0].difference
    assert below.differences[0].p_holm == below.differences[0].p
    one = compare(runs / "plain" / "seed-3", pattern, measures=["reached"])
    assert [group.seeds for group in one.groups] == [(3,), tuple(SEEDS)]


@pytest.mark.slow
def test_several_groups_are_compared_with_the_first_measure_by_measure(
    prism: Prism, runs: Path
) -> None:
    """The first of the folders is what others are compared with."""
    for arm, name in {"warned": "warned", "plain": "plain", "again": "plain"}.items():
        for seed in ("seed-0", "seed-1"):
            copytree(runs / name / seed, prism.folder / arm / seed)
    chosen = ("--measure", "decisions", "--measure", "share_ignorant")
    ran = prism("compare", "warned", "plain", "again", *chosen)
    lines = ran.out.splitlines()
    assert lines[0] == (
        "plain (2 runs), again (2 runs) against warned (2 runs) (the first), "
        "in 2 pairs of the same seed"
    )
    assert [line.split()[:2] for line in lines if line.startswith((" dec", " share"))] == [
        ["decisions", "plain"],
        ["decisions", "again"],
        ["share_ignorant", "plain"],
        ["share_ignorant", "again"],
    ] * 2
    assert {"interval", "p"} <= set(ran.out.split())


@pytest.mark.slow
def test_runs_without_partners_are_told(runs: Path) -> None:
    """Seeds of one group alone are left out of pairs; without shared seeds groups are compared."""
    plain, warned = runs / "plain", runs / "warned"
    three = [plain / f"seed-{seed}" for seed in (1, 2, 3)]
    pairs = compare(three, [warned / "seed-2", warned / "seed-3"], measures=["decisions"])
    assert (pairs.differences[0].runs_first, pairs.differences[0].least_p) == (2, 0.5)
    assert any("with seed 1, which" in note for note in pairs.notes)
    assert any("at least 6 pairs are needed" in note for note in pairs.notes)
    groups = compare(three[:2], [warned / "seed-3", warned / "seed-4"], measures=["decisions"])
    assert (groups.differences[0].test, groups.differences[0].least_p) == ("Mann-Whitney", 2 / 6)
    assert any("share no seeds" in note for note in groups.notes)
    with pytest.raises(InputError, match="cannot be paired by their seeds"):
        compare(three[0], warned / "seed-4", paired=True)


@pytest.mark.slow
def test_runs_of_other_lengths_are_refused_or_cut(runs: Path, tmp_path: Path) -> None:
    """Runs of fewer rounds are compared by the first rounds of all, which are as in long runs."""
    Run(Rumour, 60, rounds=3, seed=1, parameters=PARAMETERS).keep(tmp_path / "short")
    long = runs / "plain" / "seed-1"
    with pytest.raises(InputError, match="to_round"):
        compare(long, tmp_path / "short")
    cut = compare(long, tmp_path / "short", to_round=3)
    assert {row.difference for row in cut.differences if row.mean_first is not None} == {0}
    with pytest.raises(FieldValueError, match="to_round must be 4 or more"):
        compare(runs, from_round=4, to_round=3)


@pytest.mark.slow
def test_a_run_that_broke_off_is_left_out(runs: Path, tmp_path: Path) -> None:
    """A run without its last rounds does not count, and that is told."""
    copytree(runs / "plain" / "seed-5", tmp_path / "seed-5")
    log = tmp_path / "seed-5" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]))
    plain = [runs / "plain" / "seed-1", tmp_path / "seed-5"]
    warned = [runs / "warned" / name for name in ("seed-1", "seed-5")]
    found = compare(plain, warned, measures=["reached"])
    assert found.differences[0].runs_first == 1
    assert any("seed-5 is left out" in note for note in found.notes)


@pytest.mark.slow
def test_rounds_are_means_of_the_runs(runs: Path, found: Comparison) -> None:
    """The last round of a group is the mean of its runs, within its band."""
    table = found.rounds(["reached"]).filter(group="warned", round=10)
    expected = sum(last(runs / "warned", seed) for seed in SEEDS) / 6
    assert table["mean"].to_list() == pytest.approx([expected])
    assert table["low"][0] <= expected <= table["high"][0]
    assert found.runs().height == 12
    assert found.table().height == len(found.differences)


@pytest.mark.slow
def test_the_page_has_figures(runs: Path, tmp_path: Path) -> None:
    """The page shows all sections; figures are saved as PDF with their fonts."""
    groups = [[runs / name / f"seed-{seed}" for seed in (3, 4)] for name in BOTH]
    found = compare(*groups, measures=["decisions", "likes", "ticks_in_ignorant"])
    assert "<h1>warned against plain</h1>" in found.html()
    assert "likes" not in found.html()  # a world that is no feed has none
    names = re.findall(r'<section id="(\w+)"', found.html())
    assert names == ["groups", "effects", "differences", "rounds"]
    assert "band: 95% interval of the mean" in found.html()
    saved = found.save_figures(tmp_path, "pdf")
    assert "effects.pdf" in {path.name for path in saved}
    for path in saved:
        content = path.read_bytes()
        assert content.startswith(b"%PDF-")
        assert b"/FontFile2" in content
    assert not found.failures


@pytest.mark.slow
def test_methods_tell_several_groups_and_the_level_as_it_is(found: Comparison) -> None:
    """The level is not rounded, and a measure that no pair has is none that was compared."""
    known = next(row for row in found.differences if row.p is not None)
    lacking = replace(known, runs_first=0, p=None, test=None)
    third = replace(found.groups[1], label="reminded")
    groups = (*found.groups, third)
    some = replace(found, groups=groups, differences=(lacking, known), confidence=0.975)
    said = some.methods()
    assert "warned, reminded were compared with plain in 18 runs" in said
    assert "in 6 pairs of the same seed." in said
    assert "have 97.5% intervals (Student's)." in said
    assert "The p-values of 1 test were corrected" in said
    assert "warned was compared with plain" in replace(some, groups=found.groups).methods()


@pytest.mark.slow
def test_the_command_writes_table_page_and_figures(prism: Prism, runs: Path) -> None:
    """The table is on standard output, what was done and what cannot be found on standard error."""
    few = [runs / name / "seed-3" for name in BOTH]
    ran = prism("compare", *few, "--measure", "decisions", "--page", "p.html", "--figures", "f")
    assert ran.status == 0, ran.err
    told = "warned/seed-3 (1 run) against plain/seed-3 (1 run) (the first), in 1 pair of the same"
    assert ran.out.startswith(told)
    assert "no tests" in ran.out
    assert " p " not in ran.out
    assert (prism.folder / "p.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert [path.name for path in (prism.folder / "f").iterdir()] == ["rounds-1.svg"]
    figure = (prism.folder / "f" / "rounds-1.svg").read_text()
    assert "Mean of decisions in each round" in figure
    assert "band:" not in figure  # of one run there is none


@pytest.mark.slow
def test_the_hint_below_the_table_counts_no_rows_that_are_none(prism: Prism, runs: Path) -> None:
    """Rows without a test are told only where there are some; ends of intervals are numbers."""
    few = [runs / name for name in BOTH]
    drawn = " ".join(prism("compare", *few, "--measure", "decisions").out.split())
    assert "has more columns" in drawn
    assert "without a test" not in drawn
    assert not re.search(r"\de[+-]\d+ to", drawn)


@pytest.mark.slow
def test_long_names_of_groups_take_no_room_from_interval_and_p(prism: Prism, runs: Path) -> None:
    """Within 80 columns all columns are there, if need be below, beside what a row is about."""
    made = prism.folder / "made"
    for name in BOTH:
        (made / f"{name},influence=4.0").mkdir(parents=True)
        for seed in SEEDS:
            target = made / f"{name},influence=4.0" / f"seed-{seed}"
            target.symlink_to(runs / name / f"seed-{seed}")
    groups = [str(made / f"{name},influence=4.0" / "seed-*") for name in BOTH]
    ran = prism("compare", *groups, "--measure", "decisions", "--measure", "share_spreader")
    assert ran.status == 0, ran.err
    assert max(map(len, ran.out.splitlines()[1:])) <= 80
    shown = ran.out.split()
    for head in ("difference", "interval", "p", "holm", "effect"):
        assert head in shown
    assert " to " in ran.out


@pytest.mark.slow
def test_a_precision_tells_how_many_seeds_it_takes(
    prism: Prism, runs: Path, found: Comparison
) -> None:
    """The narrower the interval, the more."""
    rough, fine = (found.seeds_for(width)["seeds"].to_list() for width in (0.1, 0.05))
    assert rough[0] < fine[0]
    with pytest.raises(FieldValueError, match="half_width must be above 0"):
        found.seeds_for(0)

    few = [runs / name for name in BOTH]
    asked = ("--measure", "reached", "--precision")
    assert f" {fine[0]} " in (ran := prism("compare", *few, *asked, "0.05")).out
    assert "an interval of ±0.05 takes about so many seeds" in " ".join(ran.out.split())
    assert prism("compare", *few, *asked, "0.05", "--format", "json").rows[0]["seeds"] == fine[0]
    assert "--precision must be above 0" in prism("compare", *few, *asked, "0").err


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "compared_as"), [((1, 2, 3), "pairs"), ((1, 2, 3), "groups")])
def test_table_page_latex_and_json_have_the_interval_of_scipy(
    prism: Prism, runs: Path, seeds: tuple[int, ...], compared_as: str
) -> None:
    """Student's of pairs, Welch's of groups: the same ends wherever a reader looks."""
    for name in BOTH:
        for seed in seeds:
            copytree(runs / name / f"seed-{seed}", prism.folder / name / f"seed-{seed}")
    asked = ("compare", *BOTH, "--measure", "reached", "--as", compared_as)
    (row,) = prism(*asked, "--format", "json").rows
    first, second = ([last(runs / name, seed) for seed in seeds] for name in BOTH)
    is_paired = compared_as == "pairs"
    test = (
        stats.ttest_rel(second, first)
        if is_paired
        else stats.ttest_ind(second, first, equal_var=False)
    )
    low, high = test.confidence_interval(0.95)
    assert (row["low"], row["high"], row["t_p"]) == pytest.approx((low, high, test.pvalue))
    ran = prism(*asked, "--page", "p.html", "--paper", "paper")
    told = "Student's" if is_paired else "Welch's"
    assert f"(95%, {told})" in " ".join(ran.out.split())
    latex = (prism.folder / "paper" / "differences.tex").read_text()
    assert f"{low:.3g} & {high:.3g}" in latex
    assert f"95% intervals ({told})" in (prism.folder / "paper" / "methods.md").read_text()
    assert f"{low:.3g}"[:5] in (prism.folder / "p.html").read_text()


def test_one_run_against_one_run_has_no_p(prism: Prism, runs: Path) -> None:
    """What differs is told, and that no test is possible, on paper as in data."""
    few = [runs / name / "seed-0" for name in BOTH]
    found = compare(*few)
    assert {row.p for row in found.differences} == {None}
    assert {row.low for row in found.differences} == {None}
    remarks = {row.remark for row in found.differences if row.difference}
    assert remarks == {"one run against one run: no test"}
    assert "one run against one run: no test" in found.html()
    found.save_paper(prism.folder / "paper")
    assert "reached" in (prism.folder / "paper" / "differences.tex").read_text()


def test_the_command_writes_data(prism: Prism, runs: Path) -> None:
    """Other formats have all columns."""
    few = [runs / name / "seed-0" for name in BOTH]
    (row,) = prism("compare", *few, "--measure", "reached", "--format", "json").rows
    assert (row["measure"], row["first"], row["runs_first"]) == ("reached", "plain/seed-0", 1)
    assert row["mean_second"] == last(runs / "warned", 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plain"], "is only one group of runs"),
        (["plain", "nowhere"], "nowhere: there is no such file or folder"),
        (["plain", "plain/seed-0"], "is given more than once"),
        (["plain/seed-0", "warned/seed-0", "--measure", "much"], "unknown measure; the runs have"),
        (
            ["plain/seed-0", "warned/seed-0", "--measure", "decision"],
            "unknown measure (did you mean 'decisions'?); the runs have",
        ),
        (["plain", "warned", "--page", "-"], "--page needs a file"),
        (
            ["plain/seed-0", "warned/seed-0", "--from-round", "50"],
            "the runs have 10 rounds, so none from round 50 on",
        ),
        (["plain", "x*"], "matches no file"),
        (["plain", "warned", "--by", "arm"], "prism: --by is for a batch"),
    ],
)
@pytest.mark.sampled(4)
def test_what_cannot_be_compared_is_refused(
    prism: Prism, runs: Path, arguments: list[str], said: str
) -> None:
    """One line says what is wrong."""
    folder = [str(runs / each) if each[0] in "pwx" else each for each in arguments]
    refused = prism("compare", *folder)
    assert (refused.status, refused.out) == (2, "")
    assert said in refused.err
