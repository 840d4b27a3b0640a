"""The statistics of comparisons, held against scipy and published examples."""

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("statsmodels")

from prism.science._statistics import band, estimate, holm  # noqa: E402
from tests.kit.modules import Later  # noqa: E402

stats = Later("scipy.stats")

# heights of cross- and self-fertilised plants of Darwin, in eighths of an inch
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_pairs_have_the_interval_that_fisher_published() -> None:
    """Darwin's plants differ by 20.93 eighths of an inch, with t = 2.148 (Fisher 1935, 17)."""
    found = estimate([0.0] * 15, list(map(float, DARWIN)), paired=True, confidence=0.95)
    assert found.difference == pytest.approx(20.933, abs=1e-3)
    assert found.p == pytest.approx(2 * stats.t.sf(2.148, 14), abs=1e-4)
    assert (found.low, found.high) == pytest.approx((0.03, 41.84), abs=0.01)


def test_groups_have_the_interval_of_welch() -> None:
    """Groups of unequal variance and size are compared without pooling them."""
    first, second = [1.0, 2.0, 3.0, 4.0], [2.0, 8.0, 14.0]
    found = estimate(first, second, paired=False, confidence=0.9)
    expected = stats.ttest_ind(second, first, equal_var=False)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert found.p == pytest.approx(expected.pvalue)
    scale = ((np.var(first, ddof=1) + np.var(second, ddof=1)) / 2) ** 0.5
    assert found.effect == pytest.approx(found.difference / scale)


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0, 2.0], [2.0, 4.0]), ([1.0] * 3, [1.0] * 3), ([0.3] * 6, [0.1 + 0.2] * 6)],
)
def test_few_runs_and_equal_ones_have_no_interval(first: list[float], second: list[float]) -> None:
    """Nor have sums of shares that differ in their last bits."""
    found = estimate(first, second, paired=True, confidence=0.95)
    assert (found.low, found.high, found.p) == (None, None, None)


def test_holm_corrects_what_has_a_p_value() -> None:
    """The smallest of n is multiplied by n, and none is below a smaller one's."""
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([None]) == [None]


def test_a_band_is_the_interval_of_a_mean() -> None:
    """It is Student's, from three values on."""
    values = [1.0, 2.0, 6.0]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert band(values, 0.95) == pytest.approx((3.0, *expected))
    assert band(values[:2], 0.95) == (1.5, None, None)
