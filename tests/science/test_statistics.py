"""The statistics of comparisons, held against scipy, enumerations and published examples."""

from itertools import combinations, product

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("statsmodels")

from prism.science._statistics import (  # noqa: E402
    as_counts,
    holm,
    interval,
    kolmogorov_smirnov,
    mann_whitney,
    pooled_interval,
    runs_for,
    student,
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
    assert found.superiority == 13 / 15


def test_ties_and_zeros_of_pairs_have_the_p_value_of_all_signs() -> None:
    """With ties the p-value is the share of sign patterns with as extreme a sum of ranks."""
    differences = np.array([0, 1, 1, 1, -1, 2, 3.0, 3])
    found = wilcoxon(np.zeros(8), differences)
    ranks = stats.rankdata(np.abs(differences[1:]))
    expected = ranks.sum() / 2
    sums = [ranks @ np.array(signs) for signs in product((0, 1), repeat=7)]
    extreme = [abs(each - expected) >= abs(found.statistic - expected) for each in sums]
    assert found.p == pytest.approx(np.mean(extreme))
    assert found.superiority == (6 + 0.5) / 8
    # the normal distribution would tell .025 of what no five pairs can tell
    assert wilcoxon(np.zeros(5), np.ones(5)).p == 2 / 2**5
    # sums of shares differ in their last bits, which is no difference
    assert wilcoxon(np.full(6, 0.3), np.full(6, 0.1 + 0.2)).p == 1


def test_mann_whitney_is_that_of_a_worked_example() -> None:
    """The ages at which diabetes is found in men and women have U = 17 and p = 1/9."""
    men, women = np.array([19, 22, 16, 29, 24.0]), np.array([20, 11, 17, 12.0])
    found = mann_whitney(women, men)
    assert (found.statistic, found.superiority) == (17, 17 / 20)
    assert found.p == pytest.approx(1 / 9)
    assert found.effect == pytest.approx(2 * 17 / 20 - 1)
    tied = mann_whitney(np.array([1.0, 2, 2]), np.array([2.0, 3, 3]))
    sums = [sum(each) for each in combinations(stats.rankdata([1, 2, 2, 2, 3, 3]), 3)]
    distance = abs(sum(stats.rankdata([1, 2, 2, 2, 3, 3])[3:]) - np.mean(sums))
    assert tied.p == pytest.approx(
        np.mean([abs(each - np.mean(sums)) >= distance for each in sums])
    )
    assert tied.least_p == 2 / 20


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_is_scipys(paired: bool) -> None:
    """The interval is scipy's BCa at an expanded level, its scale the mean of both variances."""
    random = np.random.default_rng(4)
    first = random.gamma(2, size=12)
    second = first + random.normal(0.5, 0.4, size=12)
    found = interval(first, second, paired=paired, confidence=0.9, resamples=500, seed=3)

    def difference(one: object, other: object, axis: int = -1) -> object:
        return np.mean(one, axis=axis) - np.mean(other, axis=axis)

    # Hesterberg (2015): of n values normal quantiles become sqrt(n / (n - 1)) times Student's t
    sizes, variances = 12, [first.var(ddof=1), second.var(ddof=1)]
    freedom = 11 if paired else 11 * sum(variances) ** 2 / sum(np.square(variances))
    reach = np.sqrt(sizes / (sizes - 1)) * stats.t.ppf(0.95, freedom)
    expected = stats.bootstrap(
        (second, first),
        difference,
        paired=paired,
        vectorized=True,
        n_resamples=500,
        confidence_level=2 * stats.norm.cdf(reach) - 1,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert found.scale == pytest.approx(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))


def test_intervals_of_nothing_are_none() -> None:
    """One run has no interval, and runs that are all alike have the difference itself."""
    options = {"confidence": 0.95, "resamples": 99, "seed": 0}
    one = interval(np.array([1.0]), np.array([3.0]), paired=True, **options)
    assert (one.difference, one.low, one.high, one.scale) == (2, None, None, None)
    alike = interval(np.full(3, 1.0), np.full(3, 2.0), paired=False, **options)
    assert (alike.low, alike.high, alike.scale) == (1, 1, None)
    two = interval(np.array([1.0, 1, 1]), np.array([1.0, 1, 2]), paired=True, **options)
    assert two.low is not None
    assert two.low <= two.difference <= two.high


def test_distributions_are_compared_by_whole_runs() -> None:
    """D is that of all values; its p-value is the share of the ways to swap the runs of pairs."""
    random = np.random.default_rng(2)
    first, second = random.poisson(2, (4, 5)) + 1, random.poisson([1, 1, 2, 3, 4], (4, 5)) + 1
    found = kolmogorov_smirnov(first, second, paired=True, seed=0)

    def distance(one: object, other: object) -> float:
        samples = [np.repeat(np.arange(5), np.sum(part, axis=0)) for part in (one, other)]
        return float(stats.ks_2samp(*samples, method="asymp").statistic)

    assert found.statistic == pytest.approx(distance(first, second))
    swaps = [np.array(each)[:, None] for each in product((False, True), repeat=4)]
    ways = [
        distance(np.where(swap, second, first), np.where(swap, first, second)) for swap in swaps
    ]
    assert found.p == np.mean([way >= found.statistic - 1e-12 for way in ways])
    assert found.least_p == 2 / 2**4
    lone = kolmogorov_smirnov(first[:1], second[:1], paired=True, seed=0)
    samples = [np.repeat(np.arange(5), part[0]) for part in (first, second)]
    assert lone.p == stats.ks_2samp(*samples).pvalue
    assert as_counts([{1.0: 2}, {3.0: 1}], [1, 3]).tolist() == [[2, 0], [0, 1]]


def test_one_run_against_several_with_ties_has_the_p_value_of_each_run_in_turn() -> None:
    """It is twice the share of runs that lie as far on the same side, for want of permutations."""
    for lone, expected in ((5.0, 2 / 5), (1.0, 1.0), (3.0, 4 / 5)):
        several = np.array([1.0, 1.0, 2.0, 3.0])
        found = mann_whitney(np.array([lone]), several)
        assert found.p == pytest.approx(expected)
        assert mann_whitney(several, np.array([lone])).p == pytest.approx(expected)
        assert found.superiority == np.mean((several > lone) + 0.5 * (several == lone))


def test_distributions_of_one_run_against_several_are_tested_by_each_run_in_turn() -> None:
    """The p-value is the share of all runs that lie at least as far from the others."""
    random = np.random.default_rng(3)
    lone, several = random.poisson(1, (1, 5)), random.poisson(3, (6, 5)) + 1
    runs = np.concatenate([lone, several])

    def distance(place: int) -> float:
        parts = runs[place], np.delete(runs, place, axis=0).sum(axis=0)
        shares = [np.cumsum(each) / each.sum() for each in parts]
        return float(np.abs(shares[0] - shares[1]).max())

    expected = np.mean([distance(place) >= distance(0) - 1e-12 for place in range(7)])
    for sides in ((lone, several), (several, lone)):
        found = kolmogorov_smirnov(*sides, paired=False, seed=0)
        assert (found.statistic, found.p) == (pytest.approx(distance(0)), expected)
        assert found.least_p == 1 / 7


@pytest.mark.parametrize("paired", [True, False])
def test_means_of_distributions_have_intervals_of_whole_runs(paired: bool) -> None:
    """Of runs of one value each, the interval is that of the runs' values."""
    values = np.random.default_rng(7).normal(size=(2, 12))
    options = {"paired": paired, "confidence": 0.95, "resamples": 199, "seed": 3}
    tables = np.split(np.eye(24, dtype=int), 2)
    pooled = pooled_interval(*tables, values.ravel(), **options)
    plain = interval(*values, **options)
    assert pooled.difference == pytest.approx(plain.difference)
    assert (pooled.low, pooled.high) == pytest.approx((plain.low, plain.high))
    lone = [table[:1] for table in tables]
    assert pooled_interval(*lone, values.ravel(), **options).low is None


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
    runs = [random.multinomial(60, [0.5, 0.3, 0.2], size=(2, 6)) for _ in range(300)]
    found = np.array([kolmogorov_smirnov(*each, paired=paired, seed=0).p for each in runs])
    assert stats.kstest(found, "uniform", alternative="greater").pvalue > 0.01
    assert np.mean(found <= 0.5) > 0.35


@pytest.mark.long
@pytest.mark.parametrize(("runs", "least"), [(6, 0.9), (20, 0.93)])
@pytest.mark.parametrize("paired", [True, False])
def test_intervals_cover_the_truth(paired: bool, runs: int, least: float) -> None:
    """Of the 95 % intervals of few runs that are not normal, near 95 % hold the difference."""
    random = np.random.default_rng(7)
    options = {"paired": paired, "confidence": 0.95, "resamples": 999}
    held = []
    for number in range(1_000):
        first, second = random.gamma(4, size=runs), random.gamma(4, size=runs) + 1
        found = interval(first, second, seed=number, **options)
        held.append(found.low <= 1 <= found.high)
    assert least < np.mean(held) < 0.98


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


def test_the_deviation_is_that_of_the_differences() -> None:
    """Of pairs that of their differences, of groups that of two single runs."""
    first, second = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 9.0])
    pairs = student(first, second, paired=True, confidence=0.95)
    groups = student(first, second, paired=False, confidence=0.95)
    assert pairs.deviation == pytest.approx(np.std(second - first, ddof=1))
    both = np.var(first, ddof=1) + np.var(second, ddof=1)
    assert groups.deviation == pytest.approx(both**0.5)
