"""Comparisons of runs, from their logs or their batch to a page and a paper."""

import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from prism import Run
from prism.errors import FieldValueError, InputError
from prism.examples.rumour import Rumour
from prism.llm import Model
from prism.science import Batch, Comparison, Difference, Plan, batch, compare
from prism.testing import FakeOllama, Fault
from tests.kit.modules import Later

np, stats = Later("numpy"), Later("scipy.stats")

SEEDS = range(5)
BOTH = ("plain", "warned")
PARAMETERS = {"friends": 8, "rewired": 0.3}
FACTORIAL: dict[str, Any] = {
    "world": "rumour",
    "agents": 30,
    "rounds": 5,
    "seeds": 4,
    "vary": {"friends": [2, 6]},
    "arm": [
        {"name": "plain"},
        {
            "name": "warned",
            "rounds": 5,
            "treatments": ["warning@2"],
            "parameters": {"rewired": 0.2},
        },
    ],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs of the same seeds, half of them treated in round 2."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        for name in BOTH:
            treatments = ("warning@2",) if name == "warned" else ()
            options = Run(
                Rumour, 60, rounds=8, seed=seed, parameters=PARAMETERS, treatments=treatments
            )
            options.keep(folder / name / f"seed-{seed}")

    return folder


@pytest.fixture(scope="module")
def result(runs: Path) -> Comparison:
    """Return the comparison of all runs."""
    return compare(runs / "plain", runs / "warned")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """Return a batch of two arms and one parameter."""
    folder = tmp_path_factory.mktemp("design") / "out"
    with ThreadPoolExecutor(1) as threads:
        return batch(Plan(FACTORIAL), folder, keep="tables", executor=threads)


def last(run: Path) -> float:
    """Return the share that knows the rumour at the end, read from the log by hand."""
    lines = (run / "events.jsonl").read_text().splitlines()
    ends = [line for line in map(json.loads, lines) if line["event"] == "round.ended"]
    return float(ends[-1]["measures"]["reached"])


def test_pairs_are_compared_as_scipy_would(runs: Path, result: Comparison) -> None:
    """The world's own measure comes first, from its last round, in pairs of the same seed."""
    row = result.differences[0]
    first, second = ([last(runs / name / f"seed-{seed}") for seed in SEEDS] for name in BOTH)
    assert (row.measure, row.kind, row.paired, row.runs_first) == ("reached", "own", True, 5)
    expected = stats.ttest_rel(second, first)
    assert (row.low, row.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert row.p == pytest.approx(expected.pvalue)
    assert row.difference == pytest.approx(sum(second) / 5 - sum(first) / 5)
    remarks = {each.remark for each in result.differences if each.p is None}
    assert remarks == {"the same in every run"}


def compared(runs: Path, folder: Path, *groups: Any, **options: Any) -> tuple[Difference, ...]:
    """Compare groups of runs that ended with these measures: a row a run, a column a measure."""
    summary = json.loads((runs / "plain" / "seed-0" / "run.json").read_text())
    for name, rows in zip(BOTH, groups, strict=True):
        for seed, values in enumerate(rows):
            measures = {f"y{number}": float(value) for number, value in enumerate(values)}
            summary["config"]["seed"] = seed
            summary["results"]["rounds"] = [{"round": 1, "measures": measures}]
            (folder / name / str(seed)).mkdir(parents=True)
            (folder / name / str(seed) / "run.json").write_text(json.dumps(summary))
    names = [f"y{number}" for number in range(len(groups[0][0]))]
    return compare(folder, measures=names, **options).differences


def test_groups_are_compared_as_scipy_would(runs: Path, tmp_path: Path) -> None:
    """Groups of unequal variance and size have the interval and the p-value of Welch.

    So have values whose squares are no numbers of a computer, in a unit of their own.
    """
    first, second = [1, 2, 3, 4], [2, 8, 14]
    each = ([[value, value * 1e-200, value * 1e200] for value in ns] for ns in (first, second))
    row, *others = compared(runs, tmp_path, *each, paired=False, confidence=0.9)
    expected = stats.ttest_ind(second, first, equal_var=False)
    assert (row.low, row.high) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert (row.p, row.p_holm) == pytest.approx((expected.pvalue, 3 * expected.pvalue))
    scale = ((np.var(first, ddof=1) + np.var(second, ddof=1)) / 2) ** 0.5
    assert row.effect == pytest.approx((8 - 2.5) / scale)
    for other, unit in zip(others, (1e-200, 1e200), strict=True):
        assert (other.low / unit, other.high / unit, other.p) == pytest.approx(
            (row.low, row.high, row.p)
        )


def test_sums_that_differ_in_their_last_bits_are_the_same(runs: Path, tmp_path: Path) -> None:
    """They have neither interval nor p-value, nor an effect."""
    (row,) = compared(runs, tmp_path, [[0.3], [0.1 + 0.2]] * 3, [[0.1 + 0.2]] * 6)
    assert (row.low, row.high, row.p, row.effect) == (None, None, None, None)


def test_p_values_are_corrected_as_statsmodels_would(result: Comparison) -> None:
    """Holm's correction covers the measures that have a test, and no others."""
    from statsmodels.stats.multitest import multipletests

    tested = [row for row in result.differences if row.p is not None]
    assert 1 < len(tested) < len(result.differences)
    wanted = multipletests([row.p for row in tested], method="holm")[1]
    assert [row.p_holm for row in tested] == pytest.approx(list(wanted))


@pytest.mark.parametrize("number", [1, 2])
def test_fewer_than_three_runs_have_no_interval_and_no_p(runs: Path, number: int) -> None:
    """What differs is reported, and that there is no test, on the page as in data."""
    few = [[runs / name / f"seed-{seed}" for seed in range(number)] for name in BOTH]
    result = compare(*few)
    assert {(row.p, row.low, row.effect) for row in result.differences} == {(None, None, None)}
    assert "fewer than 3 runs" in {row.remark for row in result.differences if row.difference}
    assert "fewer than 3 runs" in result.html()


def test_a_folder_of_groups_and_patterns_name_the_same_runs(runs: Path, result: Comparison) -> None:
    """The folders that hold runs are groups; a pattern names several runs of one."""
    below = compare(runs, measures=["reached"])
    assert list(below.groups) == list(BOTH)
    assert below.differences[0].difference == result.differences[0].difference
    one = compare(runs / "plain" / "seed-3", str(runs / "war*" / "seed-[0-4]"))
    assert [[run.seed for run in group] for group in one.groups.values()] == [[3], list(SEEDS)]


def test_runs_without_partners_are_reported(runs: Path) -> None:
    """Seeds of one group alone are left out of pairs; without shared seeds groups are compared."""
    plain, warned = runs / "plain", runs / "warned"
    three = [plain / f"seed-{seed}" for seed in (1, 2, 3)]
    pairs = compare(three, [warned / "seed-2", warned / "seed-3"], measures=["decisions_asked"])
    assert pairs.differences[0].runs_first == 2
    assert any("a run with seed 1, which" in note for note in pairs.notes)
    for first, number in ((three[:2], "no"), (three, "1")):
        others = [warned / "seed-3", warned / "seed-4"]
        groups = compare(first, others, measures=["decisions_asked"])
        assert not groups.differences[0].paired
        assert any(f"they share {number} seeds" in note for note in groups.notes)


def test_counts_are_of_all_rounds_and_nobody_in_a_state_is_a_share_of_0(
    runs: Path, tmp_path: Path
) -> None:
    """What happened is added up over the rounds; a run may never have had agents in a state."""
    summary = json.loads((runs / "plain" / "seed-0" / "run.json").read_text())
    for name, states in zip(BOTH, ({"a": 3, "b": 1}, {"a": 4}), strict=True):
        rounds = [{"round": number, "states": states, "sold": number} for number in (1, 2, 3)]
        summary["results"] = {"rounds": rounds}
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps(summary))
    rows = compare(tmp_path / "plain", tmp_path / "warned").differences
    means = {row.measure: (row.mean_first, row.mean_second) for row in rows}
    assert means == {"share_a": (0.75, 1), "share_b": (0.25, 0), "sold": (6, 6)}


def test_runs_of_other_lengths_count_with_their_last_round(runs: Path, tmp_path: Path) -> None:
    """A note says so; the first rounds of a long run are as in a short one."""
    Run(Rumour, 60, rounds=3, seed=1, parameters=PARAMETERS).keep(tmp_path / "short")
    long = runs / "plain" / "seed-1"
    whole = compare(long, tmp_path / "short")
    assert "the runs ended in rounds 3 to 8: each counts with its last round" in whole.notes
    assert whole.differences[0].difference != 0
    cut = compare(long, tmp_path / "short", to_round=3)
    assert {row.difference for row in cut.differences if row.mean_first is not None} == {0}
    with pytest.raises(FieldValueError, match="must be rounds in order, got 4 to 3"):
        compare(runs, from_round=4, to_round=3)


def test_a_run_that_broke_off_is_left_out(runs: Path, tmp_path: Path) -> None:
    """A run that has not ended does not count, and a note says so."""
    copytree(runs / "plain" / "seed-4", tmp_path / "seed-4")
    summary = tmp_path / "seed-4" / "run.json"
    told = json.loads(summary.read_text())
    summary.write_text(json.dumps({"prism": told["prism"], "config": told["config"]}))
    plain = [runs / "plain" / "seed-1", tmp_path / "seed-4"]
    warned = [runs / "warned" / name for name in ("seed-1", "seed-4")]
    result = compare(plain, warned, measures=["reached"])
    assert result.differences[0].runs_first == 1
    assert any("seed-4 is left out: it has not ended" in note for note in result.notes)
    with pytest.raises(InputError, match=r"no two groups are left to compare: .*has not ended"):
        compare(tmp_path / "seed-4", warned)


def test_rounds_are_means_of_the_runs(runs: Path, result: Comparison) -> None:
    """The last round of a group is the mean of its runs, within its band."""
    table = result.rounds(["reached"]).filter("\"group\" = 'warned' and round = 8")
    ((mean, low, high),) = table.project("mean, low, high").fetchall()
    ends = [last(runs / "warned" / f"seed-{seed}") for seed in SEEDS]
    assert mean == pytest.approx(sum(ends) / 5)
    assert (low, high) == pytest.approx(tuple(stats.ttest_1samp(ends, 0).confidence_interval(0.95)))
    assert len(result.table().fetchall()) == len(result.differences)


def test_each_arm_is_compared_with_its_control_at_each_setting(done: Batch) -> None:
    """Pairs of a batch have the same parameters and the same seed."""
    result = compare(done.folder)
    assert list(result.groups) == ["plain", "warned"]
    assert [row.setting for row in result.differences] == ["friends=2", "friends=6"]
    for row, friends in zip(result.differences, (2, 6), strict=True):
        reached = {
            arm: done.results().filter(f"arm = '{arm}' and friends = {friends}").df()["reached"]
            for arm in BOTH
        }
        assert (row.measure, row.paired, row.runs_first) == ("reached", True, 4)
        assert row.difference == pytest.approx(reached["warned"].mean() - reached["plain"].mean())


def test_the_levels_of_a_parameter_are_compared(done: Batch) -> None:
    """Another factor than the arms is named; the arms are then settings."""
    result = compare(done.folder, by="friends", measures=["reached"], from_round=2, to_round=4)
    assert list(result.groups) == ["friends=2", "friends=6"]
    assert [row.setting for row in result.differences] == ["arm=plain", "arm=warned"]
    with pytest.raises(InputError, match="names 'tiring', but the runs vary arm, friends"):
        compare(done.folder, by="tiring")


def test_a_comparison_writes_what_a_paper_needs(done: Batch, tmp_path: Path) -> None:
    """Figures as PDF, a table as LaTeX and CSV, and methods that say only what the runs had."""
    result = compare(done.folder)
    html = result.html()
    assert "<h1>warned against plain</h1>" in html
    assert "datum.value % 1 ?" in html
    assert re.findall(r'<section id="([\w-]+)"', html) == ["effects", "differences", "rounds"]
    names = {path.name for path in result.save_paper(tmp_path)}
    assert names > {"methods.md", "differences.csv", "differences.tex", "effects.pdf"}
    assert (tmp_path / "effects.pdf").read_bytes().startswith(b"%PDF-")
    methods = (tmp_path / "methods.md").read_text()
    for words in (
        *("in 16 runs (seeds 0 to 3), rounds 1 to 5,", "4 pairs of the same seed at each setting."),
        *("Each run had 30 agents.", "Varied in every combination: friends (2, 6)."),
        "Arms: plain (no treatment), warned (rounds = 5, rewired = 0.2, warning in round 2).",
        *("Measures: reached.", "have 95% intervals and p-values (Student's)"),
        *("tests (Holm 1979).", "Of 16 runs, 16 completed and 0 failed.", "scipy 1."),
    ):
        assert words in methods
    assert "Welch" not in methods
    table = (tmp_path / "differences.tex").read_text().splitlines()
    head = r"Measure & Group & Difference & 95\,\% interval & $p_{\mathrm{Holm}}$ & Effect \\"
    assert head in table
    assert sum(line.startswith("reached, friends=") for line in table) == 2


LABELLED = """
from prism.examples.rumour import Rumour
from prism.worlds import measure


class Labelled(Rumour):
    @measure(label="Share who know <100 % & {more}_", unit="%")
    def known(self) -> float:
        return 1e9 * self.reached()

    @measure
    def share_spreader(self) -> float:
        return -1.0 - self.reached()

    @measure
    def known_mean(self) -> float | None:
        return None if self.round == 5 else 7.0
"""


def test_a_comparison_says_where_models_did_not_decide(tmp_path: Path) -> None:
    """A group whose decisions are fallbacks is named with their number; one by its model is not."""
    for group in ("well", "ill"):
        with FakeOllama() as server:
            if group == "ill":
                server.fail_always(Fault.says("nonsense"))
            model = Model("llama3.2", server.host, stop_at_fallbacks="never")
            run = Run("vaccination", 12, rounds=1, seed=1, model=model)
            kept = run.keep(tmp_path / group / "one").results.totals()
    (note,) = [
        each
        for each in compare(tmp_path / "well", tmp_path / "ill", measures="covered").notes
        if "decisions" in each
    ]
    asked = kept["decisions_asked"]
    assert note == f"ill: 0 of {asked} decisions are by the model, and the others are fallbacks"


def test_a_comparison_names_a_file_that_was_edited_between_runs(tmp_path: Path) -> None:
    """Runs of two versions of one world are no pairs of one model, and a note says so."""
    for group in ("one", "other"):
        for seed in range(2):
            Run(Rumour(friends=2), 10, rounds=2, seed=seed).keep(tmp_path / group / f"{seed}")
    assert not [each for each in compare(tmp_path).notes if "version" in each]

    summary = tmp_path / "other" / "1" / "run.json"
    data = json.loads(summary.read_text())
    (name,) = data["config"]["inputs"]
    data["config"]["inputs"][name] = "0" * 64
    summary.write_text(json.dumps(data))
    changed = f"{name} has changed between these runs: they are not all of one version"
    assert changed in compare(tmp_path).notes


def test_measures_have_the_words_of_their_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The title of a measure stands in tables and in LaTeX, which compiles with no package.

    Its name is its own, also where a share or a mean would have it, and its value the last round's.
    """
    monkeypatch.chdir(tmp_path)
    Path("named.py").write_text(LABELLED)
    with ThreadPoolExecutor(1) as threads:
        plan = Plan({**FACTORIAL, "world": "named.py:Labelled"})
        done = batch(plan, "out", keep="tables", executor=threads)
    result = compare(done.folder)
    rows = {row.measure: row for row in result.differences}
    assert [*rows] == ["reached", "known", "share_spreader"]
    assert rows["known"].title == "Share who know <100 % & {more}_ (%)"
    assert rows["share_spreader"].difference == pytest.approx(-rows["reached"].difference)
    assert r"Share who know \textless{}100 \% \& \{more\}\_ (\%), friends=2" in result.latex()
    assert r" \times 10^{" in result.latex()
    if pdflatex := shutil.which("pdflatex"):
        document = rf"\documentclass{{article}}\begin{{document}}{result.latex()}\end{{document}}"
        Path("all.tex").write_text(document)
        subprocess.run([pdflatex, "-halt-on-error", "all.tex"], stdout=subprocess.PIPE, check=True)


@pytest.mark.parametrize(
    ("groups", "options", "problem"),
    [
        (["plain/seed-0"], {}, "is only one group of runs"),
        (["plain", "nowhere"], {}, "nowhere: holds no run"),
        (["plain", "plain/seed-0"], {}, "is given more than once"),
        (["plain", "warned"], {"measures": ["much"]}, "unknown measure; the runs have"),
        (["plain", "warned"], {"from_round": 50}, "have 8 rounds, so none from round 50 on"),
        (["plain", "x*"], {}, "matches no file"),
        (["plain", "warned"], {"by": "arm"}, "is for a batch"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: list[str],
    options: dict[str, Any],
    problem: str,
) -> None:
    """One line says what is wrong."""
    monkeypatch.chdir(runs)
    with pytest.raises(InputError, match=problem):
        compare(*groups, **options)
