"""Distributions over a source of uniform numbers, whichever source that is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from math import exp, floor, inf, isfinite, log1p
from numbers import Integral
from random import Random
from typing import Any, cast

_SMALLEST = 2.0**-54
"""What stands for a 0 where its logarithm or quantile is needed: half the smallest number drawn."""

_COUNTED_BELOW = 12.0
"""Means up to which a count is found by adding its probabilities one by one."""


class Distributions(ABC):
    """Draws from distributions, made of uniform numbers alone.

    A normal, exponential or lognormal number takes one uniform number, and grows with it. So two
    runs with one seed stay comparable when only a parameter of the distribution differs.
    """

    __slots__ = ()

    @abstractmethod
    def random(self) -> float:
        """Draw a float, uniform in [0, 1)."""

    def normal(self, mean: float = 0.0, sd: float = 1.0) -> float:
        """Draw from a normal distribution, by its quantile (Wichura 1988, AS 241).

        Args:
            mean: Its mean.
            sd: Its standard deviation, 0 or more.

        Raises:
            ValueError: If a number is out of its range.
        """
        require(isfinite(mean) and 0 <= sd < inf, "normal(mean, sd)", (mean, sd), "sd 0 or more")
        return mean + sd * self._standard_normal()

    def lognormal(self, mean: float = 0.0, sd: float = 1.0) -> float:
        """Draw a number whose logarithm is normally distributed.

        Args:
            mean: Mean of the logarithm.
            sd: Standard deviation of the logarithm, 0 or more.

        Raises:
            ValueError: If a number is out of its range.
        """
        is_right = isfinite(mean) and 0 <= sd < inf
        require(is_right, "lognormal(mean, sd)", (mean, sd), "sd 0 or more")
        return exp(mean + sd * self._standard_normal())

    def exponential(self, mean: float = 1.0) -> float:
        """Draw from an exponential distribution, such as the time until something happens.

        Args:
            mean: Its mean, 0 or more; one divided by the rate.

        Raises:
            ValueError: If the mean is out of its range.
        """
        require(0 <= mean < inf, "exponential(mean)", (mean,), "the mean 0 or more")
        return -mean * log1p(-self.random())

    def gamma(self, shape: float, scale: float = 1.0) -> float:
        """Draw from a gamma distribution, by Python's `random`; its mean is shape times scale.

        Args:
            shape: Above 0.
            scale: 0 or more.

        Raises:
            ValueError: If a number is out of its range.
        """
        is_right = 0 < shape < inf and 0 <= scale < inf
        require(is_right, "gamma(shape, scale)", (shape, scale), "shape above 0, scale 0 or more")
        return scale * self._standard_gamma(shape)

    def beta(self, alpha: float, beta: float) -> float:
        """Draw from a beta distribution, from 0 to 1; its mean is ``alpha / (alpha + beta)``.

        Args:
            alpha: Above 0.
            beta: Above 0.

        Raises:
            ValueError: If a number is out of its range.
        """
        is_right = 0 < alpha < inf and 0 < beta < inf
        require(is_right, "beta(alpha, beta)", (alpha, beta), "both above 0")

        # as Python's own `betavariate`, whose numbers of a very small alpha are 0
        first = self._standard_gamma(alpha)
        return first / (first + self._standard_gamma(beta)) if first else 0.0

    def poisson(self, mean: float) -> int:
        """Draw a number of events from a Poisson distribution.

        Args:
            mean: Its mean, 0 or more.

        Raises:
            ValueError: If the mean is out of its range.
        """
        require(0 <= mean < inf, "poisson(mean)", (mean,), "the mean 0 or more")
        if mean > _COUNTED_BELOW:
            # when so many of the events have happened (Ahrens and Dieter 1974)
            events = floor(mean * 7 / 8)
            time = self._standard_gamma(events)
            if time > mean:
                return self.binomial(events - 1, mean / time)
            return events + self.poisson(mean - time)

        return self._counted(exp(-mean), lambda number: mean / number)

    def binomial(self, number: int, probability: float) -> int:
        """Draw how many of several trials succeed.

        Args:
            number: Trials, 0 or more.
            probability: That of each to succeed, 0 to 1.

        Raises:
            ValueError: If a number is out of its range.
        """
        is_right = isinstance(number, Integral) and number >= 0 and 0 <= probability <= 1
        arguments = number, probability
        wanted = "a whole number of trials, 0 or more, and a probability from 0 to 1"
        require(is_right, "binomial(number, probability)", arguments, wanted)
        number = int(number)

        if probability > 0.5:
            return number - self.binomial(number, 1 - probability)
        if number * probability > _COUNTED_BELOW:
            # the middle one of as many uniform numbers in order (Relles 1972)
            middle = number // 2 + 1
            value = self.beta(middle, number - middle + 1)
            if value >= probability:
                return self.binomial(middle - 1, probability / value)
            return middle + self.binomial(number - middle, (probability - value) / (1 - value))

        odds = probability / (1 - probability)
        none = exp(number * log1p(-probability))

        return self._counted(none, lambda count: (number - count + 1) / count * odds)

    def _standard_normal(self) -> float:
        return float(_normal_quantile()(self.random() or _SMALLEST))

    def _standard_gamma(self, shape: float) -> float:
        return Random.gammavariate(cast("Random", self), shape, 1.0)

    def _counted(self, none: float, ratio: Any) -> int:
        """Draw a count by adding its probabilities.

        Args:
            none: Probability of 0.
            ratio: Returns the probability of a count, divided by that of the one before.
        """
        left, share, count = self.random(), none, 0
        while left >= share:
            left -= share
            count += 1
            share *= ratio(count)
            # what is left then is an error of rounding
            if share <= 0.0:
                return count - 1

        return count


@cache
def _normal_quantile() -> Any:
    # loaded by those who draw normal numbers alone, as it takes ten milliseconds
    from statistics import NormalDist

    return NormalDist().inv_cdf


def require(is_right: bool, call: str, arguments: Sequence[object], wanted: str) -> None:
    """Refuse arguments that are out of their range.

    Raises:
        ValueError: Names the call, what it needs, and what it got.
    """
    if not is_right:
        raise ValueError(f"{call} needs {wanted}, got {', '.join(map(repr, arguments))}")
