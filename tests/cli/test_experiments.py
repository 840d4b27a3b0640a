"""``prism batch``, ``compare``, ``sensitivity``, ``fit``, ``calibrate`` and ``report``."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from prism.testing import FakeOllama
from tests.kit.commands import Argument, Prism

pytest.importorskip("polars")

PLAN = 'world = "rumour"\nagents = 20\nrounds = 3\nmeasures = ["reached"]\n'


@pytest.fixture
def plan(prism: Prism) -> Prism:
    """Return the command line in a folder with a plan."""
    (prism.folder / "plan.toml").write_text(PLAN)
    return prism


def test_a_plan_is_carried_out_and_resumed(plan: Prism) -> None:
    """A line a run, and a table at the end; a complete batch is left as it is."""
    done = plan("batch", "plan.toml", "--seeds", 2, "--workers", 1, "--out", "out")
    assert done.status == 0, done.err
    assert done.err == "1 of 2: all/seed-0 complete\n2 of 2: all/seed-1 complete\n"
    assert "2 of 2 runs are complete" in done.out
    assert "reached" in done.out

    again = plan("resume", "out", "--json")
    assert (again.status, again.err) == (0, "prism: continuing after 2 of 2 runs\n")
    (first, second) = json.loads(again.out)["runs"]
    assert [first["run"], second["seed"], second["status"]] == ["all/seed-0", 1, "complete"]


def test_arms_are_compared(plan: Prism) -> None:
    """Differences are drawn, or written with all columns; a page beside them."""
    (plan.folder / "plan.toml").write_text(f"{PLAN}[vary]\nfriends = [2, 10]\n")
    assert plan("batch", "plan.toml", "--seeds", 3, "--workers", 1, "--out", "out").status == 0
    ran = plan("compare", "out", "--by", "friends", "--page", "page.html", "--paper", "paper")
    assert ran.status == 0, ran.err
    assert "difference" in ran.out
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")
    assert {path.suffix for path in Path("paper").iterdir()} >= {".tex", ".pdf"}
    ran = plan("compare", "out", "--by", "friends", "-o", "-", "--measure", "reached")
    (row,) = csv.DictReader(io.StringIO(ran.out))
    assert (row["measure"], row["second"]) == ("reached", "friends=10")


def test_parameters_are_screened_and_fitted(plan: Prism) -> None:
    """The indices and the estimates are printed, and are data for programs."""
    bounds = "[bounds]\nfriends = [2, 8]\ntiring = [0.1, 0.9]\n"
    (plan.folder / "plan.toml").write_text(PLAN + bounds)
    line = ("sensitivity", "plan.toml", "--samples", 2, "--workers", 1, "--out", "out", "--json")
    ran = plan(*line)
    assert ran.status == 0, ran.err
    assert {row["parameter"] for row in json.loads(ran.out)} == {"friends", "tiring"}
    assert "mu_star" in plan("resume", "out").out


@pytest.mark.slow
def test_parameters_are_fitted(plan: Prism) -> None:
    """Estimates and targets are printed, and are data for programs when it is resumed."""
    target = '[[target]]\nmeasure = "reached"\nvalue = 0.3\nspread = 0.1\n'
    (plan.folder / "plan.toml").write_text(f"{PLAN}[bounds]\ntiring = [0.1, 0.9]\n{target}")
    line = ("fit", "plan.toml", "--samples", 20, "--workers", 1, "--out", "f")
    ran = plan(*line)
    assert (ran.status, "tiring" in ran.out) == (0, True), ran.err
    assert json.loads(plan("resume", "f", "--json").out)["samples"] == 20


@pytest.mark.slow
def test_a_failed_run_is_reported_with_status_1(plan: Prism) -> None:
    """The others are complete, and the reason is printed once."""
    (plan.folder / "own_fragile.py").write_text(
        "from prism.examples.rumour import Rumour\n\n"
        "class Fragile(Rumour):\n"
        "    fails: bool = False\n\n"
        "    def round_begins(self):\n"
        "        assert not self.fails, 'broken'\n"
    )
    text = PLAN.replace('"rumour"', '"own_fragile.py:Fragile"') + "[vary]\nfails = [false, true]\n"
    (plan.folder / "plan.toml").write_text(text)
    ended = plan("batch", "plan.toml", "--workers", 1, "--out", "out")
    assert (ended.status, "1 of 2 runs are complete" in ended.out) == (1, True)
    assert ended.err.count("fails=true/seed-0 failed: ") == 1


@pytest.mark.slow
def test_a_batch_whose_model_decides_nothing_has_failed(plan: Prism) -> None:
    """Every run is complete, none of its decisions is the model's, and the status says so."""
    with FakeOllama(models=["tiny"], choose=lambda _: "nonsense") as server:
        asked = f'[reasoner]\nmodel = "tiny"\nhost = "{server.host}"\n'
        (plan.folder / "plan.toml").write_text(PLAN + asked)
        ended = plan("batch", "plan.toml", "--workers", 1, "--out", "out")
    assert (ended.status, "1 of 1 runs are complete" in ended.out) == (1, True)
    assert re.search(r"0 of \d+ decisions are by the model\.", ended.out)
    assert "the model made no decision in 1 run, such as all/seed-0" in ended.err


def test_a_policy_takes_the_place_of_who_decided(prism: Prism) -> None:
    """A run is calibrated on, and another decides by the file; a run of fallbacks is refused."""
    prism("simulate", "--agents", 30, "--rounds", 2, "--out", "model")
    found = prism("calibrate", "model", "-o", "policy.json")
    assert (found.status, "probability" in found.out) == (0, True), found.err
    line = ("simulate", "--agents", 30, "--rounds", 1, "--policy", "policy.json")
    assert prism(*line).status == 0
    assert prism("calibrate", "model", "-o", "model/events.jsonl").status == 2

    with FakeOllama(models=["tiny"], choose=lambda _: "nonsense") as server:
        asked = ("--model", f"ollama:tiny@{server.url}")
        prism("simulate", "--agents", 5, "--rounds", 1, *asked, "--out", "fallen")
    assert "there is nothing to calibrate from" in prism("calibrate", "fallen").err


def test_a_page_is_made_and_replaces_only_pages(prism: Prism) -> None:
    """Its size is printed, and another file is left as it is."""
    prism("simulate", "--agents", 10, "--rounds", 1, "--out", "run")
    (prism.folder / "page.html").write_text("<!DOCTYPE html>")
    ran = prism("report", "run", "-o", "page.html")
    assert (ran.status, ran.out.startswith("page.html: ")) == (0, True), ran.err
    (prism.folder / "note.txt").write_text("a note")
    assert "is not a web page" in prism("report", "run", "-o", "note.txt").err
    assert (prism.folder / "note.txt").read_text() == "a note"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (("batch", "plan.toml"), "--out is missing"),
        (("batch", "wrong.toml", "--out", "o"), "wrong.toml, field 'seds': is unknown"),
        (("batch", "plan.toml", "--workers", 0, "--out", "o"), "--workers"),
        (("compare", "nowhere", "other"), "nowhere"),
        (("report", "nowhere"), "nowhere: there is no such file or folder"),
        (("report", "plan.toml", "-o", "no/page.html"), "no/page.html: cannot be written"),
    ],
)
@pytest.mark.sampled(6)
def test_mistakes_are_one_line(line: tuple[Argument, ...], problem: str, plan: Prism) -> None:
    """What is missing or is no plan is refused with status 2; nothing is run."""
    (plan.folder / "wrong.toml").write_text(f"{PLAN}seds = 3\n")
    ended = plan(*line)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert problem in ended.err
    assert not (plan.folder / "o").exists()
