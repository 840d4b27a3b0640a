"""What a paper needs: tables as LaTeX, methods that say what was done, a world by its protocol."""

from pathlib import Path

import pytest

from prism.science import Plan, batch, compare
from prism.science._paper import latex_of, odd_page, seeds_of
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


def test_a_world_is_described_as_far_as_it_declares_itself() -> None:
    """All seven parts are there; what is not declared is said to be missing."""
    page = odd_page("rumour")
    assert page.count("\n## ") == 7
    for said in (
        "People who tell a rumour",
        "- trust: float, drawn: uniform from 0 to 1",
        "- `tires`: spreader to stifler",
        "- `talk` in spreader: Tell a friend",
        "- friends: int = 6",
        "- `reached`: Return the share",
        "## 6. Input data\n\nNot declared.",
    ):
        assert said in page


RATES = """
from enum import StrEnum

from prism import Agent, Statechart, Transition, World, during, measure
from prism.worlds import state

Atom = StrEnum("Atom", ["WHOLE", "SPLIT"])


class Grain(Agent):
    chart = Statechart(
        Atom, [Transition("splits", Atom.WHOLE, Atom.SPLIT)], initial=Atom.WHOLE, name="grain"
    )
    glow: float = measure(state(0.0))


class Decay(World[Grain]):
    activation = "rate"
    kinds = [Grain]

    @during(Atom.WHOLE, rate=0.5)
    def split(self, grain: Grain) -> None:
        "Split, and glow no more."
        grain.fire("splits")

    def until(self) -> bool:
        "Nothing is whole any more."
        return self.count(Atom.WHOLE) == 0
"""


def test_a_world_with_rates_is_described_by_them(tmp_path: Path, prism: Prism) -> None:
    """Rates, an early end and measures of agents stand in the protocol and in ``world show``."""
    file = tmp_path / "decay.py"
    file.write_text(RATES)
    page, shown = odd_page(f"{file}:Decay"), prism("world", "show", f"{file}:Decay").out
    assert "in turns" not in page
    assert "Events happen one at a time, at rates per round, in continuous time. A run ends" in page
    assert "by `until`: Nothing is whole any more." in page
    assert "- `split` in whole, at the rate 0.5: Split, and glow no more." in page
    assert "- `glow` of each Grain" in page
    for line in ("split: during whole, at the rate 0.5", "until: Nothing is whole any more."):
        assert line in shown
    assert "glow of each Grain" in shown


@pytest.mark.slow
def test_a_comparison_writes_what_a_paper_needs(tmp_path: Path, prism: Prism) -> None:
    """Figures as PDF, tables as LaTeX and CSV, and methods with seeds, tests and versions."""
    arms = [{"name": "plain"}, {"name": "warned", "treatments": ["warning@2"]}]
    plan = {"world": "rumour", "agents": 60, "rounds": 12, "seeds": 6, "arm": arms}
    folder = batch(Plan(plan), tmp_path / "out", keep="tables", workers=2).folder
    ran = prism("compare", folder, "--paper", "paper")
    assert ran.status == 0, ran.err
    names = {path.name for path in Path("paper").iterdir()}
    assert names >= {"methods.md", "odd.md", "model.tex", "differences.csv", "differences.tex"}
    assert any(name.endswith(".pdf") for name in names)
    methods = Path("paper/methods.md").read_text()
    for said in (
        *("12 runs (seeds 0 to 5)", "Wilcoxon", "Holm", "All 12 runs completed", "scipy 1."),
        *("in 6 pairs of the same seed", "Each run had 60 agents", "with Student's beside them"),
        *(
            "Arms: plain (no treatment), warned (warning in round 2).",
            "Measures: reached in round 12.",
            "two-way",
        ),
    ):
        assert said in methods
    assert "Welch" not in methods
    assert "prism.bib" in names
    assert "Network: undirected" in Path("paper/odd.md").read_text()
    assert methods == compare(folder).methods() + "\n"
