"""Assignment to treatments, drawn by seed, experiment and subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, Literal

from prism.errors import FieldValueError
from prism.randomness import RandomStream

CONTROL = "control"
"""The arm of subjects that an experiment does not treat."""

Unit = Literal["agent_id", "post_id"]
"""The kinds of subjects, as named in the log."""

_ROUNDING = 1e-9


class Assignments:
    """Assigns subjects to the arms of experiments.

    Each subject has one number per experiment, uniform in [0, 1) and keyed by (seed, experiment,
    subject). The arms divide this interval in their order. An assignment therefore shifts no other
    draw of a run and does not depend on other subjects.

    Args:
        seed: Seed of the run.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        # by experiment: the slice of [0, 1) that each arm has
        self._experiments: dict[str, dict[str, tuple[float, float]]] = {}
        # the arm by experiment, kind of subject and subject, until it has been logged
        self._waiting: dict[tuple[str, Unit, str], str] = {}

    def add_arm(self, experiment: str, arm: str, share: float) -> None:
        """Give an arm its slice after those of earlier arms, unless it has one.

        Raises:
            FieldValueError: If the share is not a number from 0 on, the shares of an experiment
                exceed 1, or the arm already exists with another share.
        """
        if not isinstance(share, Real) or not share >= 0:
            raise FieldValueError(
                f"the share of arm {arm!r} must be a number from 0 to 1, got {share!r}"
            )

        slices = self._experiments.setdefault(experiment, {})
        if arm in slices:
            low, high = slices[arm]
            # a slice that ends at 1 reaches beyond it
            if abs(min(high, 1.0) - low - share) > _ROUNDING:
                raise FieldValueError(
                    f"experiment {experiment!r} has two arms {arm!r} with different shares: give "
                    "them different names"
                )
            return

        begin = min(max((high for _, high in slices.values()), default=0.0), 1.0)
        end = begin + share
        if end > 1 + _ROUNDING:
            arms = ", ".join([*slices, arm])
            raise FieldValueError(
                f"the arms of experiment {experiment!r} ({arms}) must have shares that add up to "
                f"at most 1, got {end:.4g}"
            )

        # with shares that add up to 1, rounding must leave nobody out
        slices[arm] = (begin, 2.0 if end > 1 - _ROUNDING else end)

    def assign(self, unit: Unit, subjects: Iterable[str], experiment: str, arm: str) -> list[str]:
        """Return the subjects that are in an arm, and record all assignments for the log.

        Args:
            unit: What the subjects are.
            subjects: Their ids.
            experiment: The experiment.
            arm: The arm, added with `add_arm`.
        """
        low, high = self._experiments[experiment][arm]
        chosen = []
        for subject in subjects:
            key = (experiment, unit, subject)
            if low <= self._draw(*key) < high:
                chosen.append(subject)
                self._waiting[key] = arm
            else:
                # another arm of the experiment may still treat this subject
                self._waiting.setdefault(key, CONTROL)

        return chosen

    def drain(self) -> Iterator[dict[str, Any]]:
        """Yield the keys of the events for all assignments since the last call."""
        waiting, self._waiting = self._waiting, {}
        for (experiment, unit, subject), arm in waiting.items():
            yield {"experiment": experiment, "arm": arm, unit: subject}

    def _draw(self, experiment: str, unit: str, subject: str) -> float:
        return RandomStream(self._seed, "treatment", experiment, unit, subject).random()
