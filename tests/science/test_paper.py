"""What a paper needs: tables as LaTeX and methods that say what was done."""

from pathlib import Path

import pytest

from prism.science import Plan, batch, compare
from prism.science._paper import latex_of, seeds_of
from tests.kit.commands import Prism

pl = pytest.importorskip("polars")
pytest.importorskip("altair")
pytest.importorskip("statsmodels")


def test_a_table_is_latex_whatever_its_texts_hold() -> None:
    """Signs of LaTeX are escaped, numbers have three digits, and what is missing is empty."""
    table = pl.DataFrame(
        {
            "a_b": ["50 % & more", "{x}\\y~^"],
            "mean": [0.123456, None],
            "n": [12345, None],
            "held": [True, None],
        }
    )
    assert latex_of(table).splitlines() == [
        r"\begin{tabular}{lrrl}",
        r"\toprule",
        r"a\_b & mean & n & held \\",
        r"\midrule",
        r"50 \% \& more & 0.123 & 12345 & yes \\",
        r"\{x\}\textbackslash y\textasciitilde \textasciicircum  &  &  &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize(
    ("seeds", "said"),
    [((3,), "seed 3"), ((2, 0, 1, 1), "seeds 0 to 2"), ((1, 5), "seeds 1, 5")],
)
def test_seeds_are_a_range_where_they_are_one(seeds: tuple[int, ...], said: str) -> None:
    """Others are named one by one."""
    assert seeds_of(seeds) == said


@pytest.mark.slow
def test_a_comparison_writes_what_a_paper_needs(tmp_path: Path, prism: Prism) -> None:
    """Figures as PDF, tables as LaTeX and CSV, and methods with seeds, tests and versions."""
    arms = [{"name": "plain"}, {"name": "warned", "treatments": ["warning@2"]}]
    plan = {"world": "rumour", "agents": 60, "rounds": 12, "seeds": 6, "arm": arms}
    folder = batch(Plan(plan), tmp_path / "out", keep="tables", workers=2).folder
    ran = prism("compare", folder, "--paper", "paper")
    assert ran.status == 0, ran.err
    names = {path.name for path in Path("paper").iterdir()}
    assert names >= {"methods.md", "differences.csv", "differences.tex"}
    assert any(name.endswith(".pdf") for name in names)
    methods = Path("paper/methods.md").read_text()
    for said in (
        *("12 runs (seeds 0 to 5)", "Wilcoxon", "Holm", "All 12 runs completed", "scipy 1."),
        *("in 6 pairs of the same seed", "Each run had 60 agents", "95% intervals (Student's)"),
        *(
            "Arms: plain (no treatment), warned (warning in round 2).",
            "Measures: reached in round 12.",
        ),
    ):
        assert said in methods
    assert "Welch" not in methods
    assert methods == compare(folder).methods() + "\n"
