"""Tails: power laws, and what they are compared with."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism.analysis import cascades, read_log
from prism.errors import FieldValueError
from prism.science import fit_tail, tails

pl = pytest.importorskip("polars")
WriteLog = Callable[..., Path]


@pytest.mark.long
def test_the_words_of_moby_dick_have_the_published_tail() -> None:
    """Exponent, beginning and comparisons are those of Clauset, Shalizi and Newman (2009)."""
    powerlaw = pytest.importorskip("powerlaw")
    words = Path(powerlaw.__file__).parent / "reference_data" / "words.txt"
    if not words.exists():
        pytest.skip("this powerlaw comes without its data")

    tail = fit_tail([int(float(line)) for line in words.read_text().split()])
    assert (tail.values, tail.largest, tail.xmin, tail.in_tail) == (18855, 14086, 7, 2958)
    assert tail.exponent == pytest.approx(1.95, abs=0.02)
    assert tail.exponent_se == pytest.approx(0.02, abs=0.005)
    # they give .395 with p = .69, and 9.09 with p = 0
    assert tail.lognormal == pytest.approx(0.395, abs=0.1)
    assert tail.lognormal_p == pytest.approx(0.69, abs=0.05)
    assert tail.exponential == pytest.approx(9.09, abs=0.1)
    assert tail.verdict == "power law"


@pytest.mark.slow
def test_numbers_without_a_heavy_tail_are_told() -> None:
    """Geometric numbers are better described by another distribution."""
    numpy = pytest.importorskip("numpy")
    numbers = numpy.random.default_rng(1).geometric(0.3, 3000)
    tail = fit_tail(numbers.tolist())
    assert tail.verdict in ("exponential", "lognormal")
    assert tail.exponential is not None
    assert tail.exponential < 0


NO_TAIL = [[], [0, 0, 3], [1] * 200, [1, 2] * 100, list(range(49)), [1] * 190 + [2] * 20 + [3] * 5]


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [4.5, 3.5, 1.6])
@pytest.mark.sampled(3)
def test_steep_and_flat_tails_have_their_exponents(exponent: float) -> None:
    """The exponent is that of the greatest likelihood, also beyond 3."""
    numpy = pytest.importorskip("numpy")
    numbers = numpy.random.default_rng(1).zipf(exponent, 1000)
    tail = fit_tail([int(number) for number in numbers if number < 10**6])
    assert tail.exponent_se is not None
    assert tail.exponent == pytest.approx(exponent, abs=4 * tail.exponent_se)


@pytest.mark.slow
def test_a_bootstrap_rules_out_what_is_no_power_law() -> None:
    """A sample of a power law is as near to its fit as others are; a hump is not."""
    numpy = pytest.importorskip("numpy")
    rng = numpy.random.default_rng(4)
    law = fit_tail(rng.zipf(2.5, 100).tolist(), bootstrap=10, seed=1)
    hump = fit_tail((rng.poisson(20, 100) + 1).tolist(), bootstrap=10, seed=1)
    assert law.ks_p is not None
    assert law.ks_p > 0.1
    assert hump.ks_p == 0
    assert hump.verdict != "power law"
    with pytest.raises(FieldValueError, match="bootstrap must be 0 or more"):
        fit_tail([1], bootstrap=-1)


@pytest.mark.parametrize("values", NO_TAIL)
@pytest.mark.slow
def test_too_little_data_is_said(values: list[int]) -> None:
    """A tail of few or hardly different numbers has no exponent."""
    tail = fit_tail(values)
    assert (tail.verdict, tail.exponent, tail.lognormal_p) == ("too little data", None, None)
    assert tail.values == sum(value > 0 for value in values)


def test_values_are_counts() -> None:
    """Nothing happens less than never."""
    with pytest.raises(FieldValueError, match="got -2"):
        fit_tail([1, -2])


@pytest.mark.slow
def test_the_distributions_are_those_of_the_run(
    folder: Path, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Every distribution of a run has its row; reactions are of different agents."""
    table = tails(read_log(folder))
    rows = {row["what"]: row for row in table.iter_rows(named=True)}
    assert list(rows) == ["cascades", "reshares", "written", "likes", "views", "reactions"]
    trees = cascades(read_log(folder))
    assert (rows["cascades"]["values"], rows["cascades"]["largest"]) == (
        trees.height,
        trees["size"].max(),
    )
    lines = [
        make.post("x", "p"),
        *(make.like("y", "p", "x") for _ in range(3)),
        make.like("z", "p", "x"),
        make.post("x", "q", "p", "p"),
    ]
    small = {row["what"]: row for row in tails(read_log(write_log(lines))).iter_rows(named=True)}
    assert (small["reactions"]["values"], small["reactions"]["largest"]) == (1, 2)
    assert (small["likes"]["largest"], small["cascades"]["largest"]) == (4, 2)
    in_rounds = tails(read_log(folder), by_round=True)
    assert in_rounds.filter(pl.col("round").is_null()).drop("round").equals(table)
    parts = in_rounds.filter(pl.col("round").is_not_null(), what="cascades")
    assert parts["values"].sum() == trees.height


@pytest.mark.slow
def test_followers_are_counted_where_the_log_tells(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """The numbers of followers of a log that tells who follows whom have a row, others none."""
    lines = [
        {"event": "agent.joined", "agent_id": "a", "follows": ["b", "c"]},
        {"event": "agent.joined", "agent_id": "b", "follows": ["c"]},
        make.post("a", "p"),
    ]
    logs = read_log(write_log(lines))
    (row,) = tails(logs).filter(what="followers").iter_rows(named=True)
    assert (row["values"], row["largest"]) == (2, 2)
    assert not any(note.kind == "no_follows" for note in logs.notes)
