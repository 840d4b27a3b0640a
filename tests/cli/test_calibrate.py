"""``prism calibrate`` and ``simulate --policy`` as a user runs them."""

import json

import pytest

pytest.importorskip("polars")

from prism.testing import FakeOllama
from tests.kit.choosing import by_shares, logged
from tests.kit.commands import Prism


@pytest.mark.slow
def test_a_policy_takes_the_place_of_who_decided(prism: Prism) -> None:
    """A run is calibrated on, and another decides by the file."""
    prism("simulate", "--agents", 60, "--rounds", 3, "--out", "model")
    found = prism("calibrate", "model", "-o", "policy.json")
    assert (found.status, found.err) == (0, "")
    assert "Probabilities" in found.out

    ran = prism("simulate", "--agents", 60, "--rounds", 3, "--policy", "policy.json", "--out", "b")
    assert ran.status == 0
    shares = json.loads((prism.folder / "policy.json").read_text())["evaluating"]["decides"]
    assert sum(shares.values()) == pytest.approx(1)


def test_a_run_in_which_every_decision_fell_back_is_refused(prism: Prism) -> None:
    """Nobody chose in it, which one line says."""
    with FakeOllama(choose=lambda _: "nonsense") as server:
        asked = ("--reasoner", "ollama", "--model", "llama3.2", "--host", server.host)
        limits = ("--stop-at-fallbacks", "never", "--patience", 0)
        prism("simulate", "--agents", 8, "--rounds", 1, *asked, *limits, "--out", "model")
    found = prism("calibrate", "model")
    assert (found.status, len(found.err.splitlines())) == (2, 1)
    assert "there is nothing to calibrate from" in found.err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--least", 0), "--least"),
        (("-o", "model/events.jsonl"), "model/events.jsonl"),
    ],
)
def test_mistakes_are_one_line(prism: Prism, options: tuple[str, ...], problem: str) -> None:
    """What cannot be is said in one line, and nothing is written."""
    prism("simulate", "--agents", 8, "--rounds", 1, "--out", "model")
    before = (prism.folder / "model" / "events.jsonl").read_bytes()
    found = prism("calibrate", "model", *options)
    assert (found.status, len(found.err.splitlines())) == (2, 1)
    assert problem in found.err
    assert (prism.folder / "model" / "events.jsonl").read_bytes() == before


def test_decisions_that_are_left_out_are_counted_by_reason(prism: Prism) -> None:
    """One is one decision; what is calibrated is of the rest."""
    rows = list(by_shares({"lurker": (5, 15, 10)}))
    fell_back = [{**rows[0], "source": "fallback"}] * 2
    events = logged([*rows, *fell_back, {**rows[0], "chosen": "flying"}])
    (prism.folder / "run.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    found = prism("calibrate", "run.jsonl").out.splitlines()
    assert "Left out: 2 decisions (fallback)" in found
    assert "Left out: 1 decision (not among the options)" in found


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--reasoner", "ollama", "--model", "m"), "--reasoner ollama"),
    ],
)
def test_only_one_can_decide(prism: Prism, options: tuple[str, ...], named: str) -> None:
    """A policy file stands beside no model and no earlier run."""
    found = prism("simulate", "--policy", "p.json", *options)
    assert (found.status, f"leave out {named}" in found.err) == (2, True)
