"""The statistics of comparisons, held against scipy, enumerations and published examples."""

from itertools import combinations, product

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("statsmodels")

from prism.science._statistics import (  # noqa: E402
    band,
    holm,
    interval,
    mann_whitney,
    runs_for,
    wilcoxon,
)
from tests.kit.later import Later  # noqa: E402

stats = Later("scipy.stats")

# Cross- and self-fertilised plants of Darwin, as Wilcoxon (1945) tests them.
DARWIN = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]


def test_wilcoxon_finds_what_he_published() -> None:
    """The plants of Darwin have T = 24, which Wilcoxon's table puts below .05 and above .02."""
    found = wilcoxon(np.zeros(15), np.array(DARWIN, float))
    assert found.statistic == 15 * 16 / 2 - 24
    assert found.p == pytest.approx(0.041259765625)
    assert found.effect == pytest.approx((96 - 24) / 120)


def test_ties_and_zeros_of_pairs_have_the_p_value_of_all_signs() -> None:
    """With ties the p-value is the share of sign patterns with as extreme a sum of ranks."""
    differences = np.array([0, 1, 1, 1, -1, 2, 3.0, 3])
    found = wilcoxon(np.zeros(8), differences)
    ranks = stats.rankdata(np.abs(differences[1:]))
    expected = ranks.sum() / 2
    sums = [ranks @ np.array(signs) for signs in product((0, 1), repeat=7)]
    extreme = [abs(each - expected) >= abs(found.statistic - expected) for each in sums]
    assert found.p == pytest.approx(np.mean(extreme))
    # the normal distribution would tell .025 of what no five pairs can tell
    assert wilcoxon(np.zeros(5), np.ones(5)).p == 2 / 2**5
    # sums of shares differ in their last bits, which is no difference
    assert wilcoxon(np.full(6, 0.3), np.full(6, 0.1 + 0.2)).p == 1


def test_mann_whitney_is_that_of_a_worked_example() -> None:
    """The ages at which diabetes is found in men and women have U = 17 and p = 1/9."""
    men, women = np.array([19, 22, 16, 29, 24.0]), np.array([20, 11, 17, 12.0])
    found = mann_whitney(women, men)
    assert found.statistic == 17
    assert found.p == pytest.approx(1 / 9)
    assert found.effect == pytest.approx(2 * 17 / 20 - 1)
    tied = mann_whitney(np.array([1.0, 2, 2]), np.array([2.0, 3, 3]))
    sums = [sum(each) for each in combinations(stats.rankdata([1, 2, 2, 2, 3, 3]), 3)]
    distance = abs(sum(stats.rankdata([1, 2, 2, 2, 3, 3])[3:]) - np.mean(sums))
    assert tied.p == pytest.approx(
        np.mean([abs(each - np.mean(sums)) >= distance for each in sums])
    )
    assert tied.least_p == 2 / 20


FIRST, SECOND = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 9.0])


@pytest.mark.parametrize(
    ("paired", "low", "high", "p"),
    [
        # by scipy.stats.ttest_rel(SECOND, FIRST), and ttest_ind with equal_var=False
        (True, -3.960314, 8.293647, 0.267533),
        (False, -6.258281, 10.591614, 0.445884),
    ],
)
def test_the_interval_is_students_or_welchs(
    paired: bool, low: float, high: float, p: float
) -> None:
    """Its scale is the mean of both variances; its deviation that of what is compared."""
    found = interval(FIRST, SECOND, paired=paired, confidence=0.95)
    assert (found.low, found.high, found.t_p) == pytest.approx((low, high, p), abs=1e-5)
    variances = FIRST.var(ddof=1), SECOND.var(ddof=1)
    assert found.scale == pytest.approx(np.sqrt(sum(variances) / 2))
    both = np.std(SECOND - FIRST, ddof=1) if paired else sum(variances) ** 0.5
    assert found.deviation == pytest.approx(both)


def test_intervals_of_nothing_are_none() -> None:
    """One run has no interval, and neither have runs that are all alike."""
    one = interval(np.array([1.0]), np.array([3.0]), paired=True, confidence=0.95)
    assert (one.difference, one.low, one.high, one.scale) == (2, None, None, None)
    several = interval(np.array([1.0]), np.array([3.0, 4.0]), paired=False, confidence=0.95)
    assert (several.difference, several.low, several.t_p) == (2.5, None, None)
    alike = interval(np.full(3, 1.0), np.full(3, 2.0), paired=False, confidence=0.95)
    assert (alike.difference, alike.low, alike.high, alike.scale) == (1, None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 3, 4, 20])
@pytest.mark.parametrize("paired", [True, False])
def test_intervals_cover_the_truth(paired: bool, runs: int) -> None:
    """Of the 95 % intervals of two runs and more, 95 % hold the difference."""
    random = np.random.default_rng(7)
    held = []
    for _ in range(400):
        first, second = random.normal(size=(2, runs))
        found = interval(first, second + 1, paired=paired, confidence=0.95)
        held.append(found.low <= 1 <= found.high)
    assert 0.92 < np.mean(held) < 1


def test_bands_are_intervals_of_means() -> None:
    """In each round those of the runs that have it; a single run has none."""
    values = np.array([[1.0, 5.0], [2.0, np.nan], [6.0, np.nan]])
    mean, low, high = band(values, confidence=0.95)
    assert mean.tolist() == [3, 5]
    expected = stats.t.interval(0.95, 2, 3, stats.sem(values[:, 0]))
    assert (low[0], high[0]) == pytest.approx(expected)
    assert np.isnan([low[1], high[1]]).all()


def test_one_run_against_several_with_ties_has_the_p_value_of_each_run_in_turn() -> None:
    """It is twice the share of runs that lie as far on the same side, for want of permutations."""
    for lone, expected in ((5.0, 2 / 5), (1.0, 1.0), (3.0, 4 / 5)):
        several = np.array([1.0, 1.0, 2.0, 3.0])
        found = mann_whitney(np.array([lone]), several)
        assert found.p == pytest.approx(expected)
        assert mann_whitney(several, np.array([lone])).p == pytest.approx(expected)
        assert found.effect == np.mean(np.sign(several - lone))


@pytest.mark.slow
def test_holm_corrects_tests_alone() -> None:
    """The k-th smallest of m p-values is multiplied by m - k + 1, and none is below a smaller."""
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx([0.03, None, 0.06, 0.06, 0.02])
    assert holm([None]) == [None]


@pytest.mark.long
@pytest.mark.parametrize("paired", [True, False])
def test_p_values_say_what_they_should_where_nothing_differs(paired: bool) -> None:
    """Under the null hypothesis no level is undercut more often than it says, and .05 as often."""
    random = np.random.default_rng(3)
    test = wilcoxon if paired else mann_whitney
    found = np.array([test(*random.gamma(1.5, size=(2, 20))).p for _ in range(2_000)])
    # p-values of ranks are discrete: they may lie above the diagonal's steps, never below
    assert stats.kstest(found, "uniform", alternative="greater").pvalue > 0.01
    assert 0.03 < np.mean(found <= 0.05) < 0.065


@pytest.mark.parametrize("paired", [True, False])
def test_so_many_runs_make_an_interval_so_narrow_and_one_fewer_does_not(*, paired: bool) -> None:
    """With the deviation that the runs had, Student's interval is at most as wide as asked."""
    freedom = 1 if paired else 2
    for half_width in (0.05, 0.3, 1.0, 40.0):
        found = runs_for(half_width, 1.0, paired=paired, confidence=0.95)
        halves = [
            stats.t.ppf(0.975, freedom * (number - 1)) / number**0.5
            for number in (found - 1, found)
            if number > 1
        ]
        assert halves[-1] <= half_width
        assert found == 2 or halves[0] > half_width
