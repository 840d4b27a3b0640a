"""Comparisons of runs, from their logs to a page."""

import re
from pathlib import Path
from shutil import copytree

import pytest

from prism.errors import FieldValueError, InputError
from prism.runs import begin
from prism.worlds import WorldRun
from prism.worlds.examples.rumour import Rumour
from tests.kit.commands import Prism

pytest.importorskip("polars")
pytest.importorskip("altair")
pytest.importorskip("statsmodels")
stats = pytest.importorskip("scipy.stats")

from prism.analysis import measures, read_log  # noqa: E402
from prism.science import Comparison, compare  # noqa: E402

SEEDS = range(6)
BOTH = ("plain", "warned")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs of the same seeds, half of them treated in round 2."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        for name in BOTH:
            treatments = ("warning@2",) if name == "warned" else ()
            options = WorldRun(Rumour, 20, rounds=6, seed=seed, treatments=treatments)
            begin(options, folder / name / f"seed-{seed}")

    return folder


@pytest.fixture(scope="module")
def found(runs: Path) -> Comparison:
    """Return the comparison of all runs."""
    return compare(runs / "plain", runs / "warned", resamples=199)


def last(folder: Path, seed: int) -> float:
    """Return the last value of the world's measure."""
    return float(measures(read_log(folder / f"seed-{seed}"))["value"][-1])


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
    assert row.low <= row.difference <= row.high
    tested = [each for each in found.differences if each.p is not None]
    assert (
        min(each.p_holm for each in tested) >= min(each.p for each in tested) * len(tested) - 1e-9
    )
    assert {each.remark for each in found.differences if each.test is None} == {
        "the same in every run"
    }
    assert any("no p-value below" in note for note in found.notes)


def test_a_folder_of_groups_and_patterns_name_the_same_runs(runs: Path, found: Comparison) -> None:
    """The folders that hold runs are groups; a pattern names several runs of one."""
    below = compare(runs, resamples=199, measures=["reached"])
    matched = compare(str(runs / "pl*"), str(runs / "war*" / "seed-*"), measures=["reached"])
    assert [group.label for group in below.groups] == list(BOTH)
    assert below.differences[0].difference == found.differences[0].difference
    assert matched.differences[0].p == below.differences[0].p
    assert below.differences[0].p_holm == below.differences[0].p


def test_runs_without_partners_are_told(runs: Path) -> None:
    """Seeds of one group alone are left out of pairs; without shared seeds groups are compared."""
    some = [runs / "warned" / f"seed-{seed}" for seed in (0, 1, 2)]
    pairs = compare(runs / "plain", some, measures=["reached"])
    assert (pairs.differences[0].runs_first, pairs.differences[0].least_p) == (3, 0.25)
    assert any("seed 3, 4, 5" in note for note in pairs.notes)
    assert any("at least 6 pairs are needed" in note for note in pairs.notes)
    others = [runs / "plain" / f"seed-{seed}" for seed in (3, 4, 5)]
    groups = compare(others, some, measures=["reached"])
    assert groups.differences[0].test in ("Mann-Whitney", None)
    assert any("share no seeds" in note for note in groups.notes)
    with pytest.raises(InputError, match="cannot be paired by their seeds"):
        compare(others, some, paired=True)


def test_runs_of_other_lengths_are_refused_or_cut(runs: Path, tmp_path: Path) -> None:
    """Runs of fewer rounds are compared by the first rounds of all, which are as in long runs."""
    for seed in (0, 1):
        begin(WorldRun(Rumour, 20, rounds=3, seed=seed), tmp_path / "short" / str(seed))
    with pytest.raises(InputError, match="to_round"):
        compare(runs / "plain", tmp_path / "short")
    cut = compare(runs / "plain", tmp_path / "short", to_round=3)
    assert {row.difference for row in cut.differences} == {0}
    with pytest.raises(FieldValueError, match="to_round must be 4 or more"):
        compare(runs, from_round=4, to_round=3)


def test_a_run_that_broke_off_is_left_out(runs: Path, tmp_path: Path) -> None:
    """A run without its last rounds does not count, and that is told."""
    for name in BOTH:
        copytree(runs / name, tmp_path / name)
    log = tmp_path / "plain" / "seed-5" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) // 2]))
    found = compare(tmp_path, measures=["reached"])
    assert found.differences[0].runs_first == 5
    assert any("seed-5 is left out" in note for note in found.notes)


def test_rounds_are_means_of_the_runs(runs: Path, found: Comparison) -> None:
    """The last round of a group is the mean of its runs, within its band."""
    table = found.rounds(["reached"]).filter(group="warned", round=6)
    expected = sum(last(runs / "warned", seed) for seed in SEEDS) / 6
    assert table["mean"].to_list() == pytest.approx([expected])
    assert table["low"][0] <= expected <= table["high"][0]
    assert found.runs().height == 12
    assert found.table().height == len(found.differences)


def test_the_page_has_figures_and_what_is_the_same(found: Comparison, tmp_path: Path) -> None:
    """The page shows all sections; figures are saved as PDF with their fonts."""
    names = re.findall(r'<section id="(\w+)"', found.html())
    assert names == ["groups", "effects", "differences", "rounds", "distributions"]
    saved = found.save_figures(tmp_path, "pdf")
    assert "effects.pdf" in {path.name for path in saved}
    for path in saved:
        content = path.read_bytes()
        assert content.startswith(b"%PDF-")
        assert b"/FontFile2" in content
    assert not found.failures


def test_the_command_writes_table_page_and_figures(prism: Prism, runs: Path) -> None:
    """The table is on standard output, what was done on standard error; errors name the group."""
    ran = prism("compare", runs, "--measure", "reached", "--page", "p.html", "--figures", "f")
    assert ran.status == 0, ran.err
    assert ran.out.startswith("warned (6 runs) against plain (6 runs)\n")
    assert "p.html: " in ran.err
    assert (prism.folder / "f" / "effects.svg").is_file()
    rows = prism("compare", runs, "--measure", "reached", "--format", "json").rows
    assert [row["measure"] for row in rows] == ["reached"]
    for arguments, said in (
        ([runs / "plain"], "is one group of runs alone"),
        ([runs, "nowhere"], "nowhere: cannot be read"),
        ([runs / "plain", runs / "plain"], "is given more than once"),
        ([runs, "--measure", "much"], "no such measure; the runs have reached"),
        ([runs, "--page", "-"], "a page goes to a file here"),
        (["x*", runs], "matches no file"),
    ):
        refused = prism("compare", *arguments)
        assert (refused.status, refused.out) == (2, "")
        assert said in refused.err
