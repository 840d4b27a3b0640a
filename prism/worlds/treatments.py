"""Treatments: what a run changes in its world when a round begins, and who is treated."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal

from prism.errors import FieldValueError, InputError
from prism.randomness import RandomStream
from prism.statechart.names import identify
from prism.telemetry.events import TREATMENT_APPLIED, TREATMENT_ASSIGNED
from prism.worlds._events import Events
from prism.worlds.arguments import parameter_values, plain_value, read_parameters
from prism.worlds.fields import TREATMENT, marked, unknown_name
from prism.worlds.world import World

CONTROL = "control"
"""The arm of subjects that an experiment does not treat."""

Unit = Literal["agent_id", "post_id"]
"""The kinds of subjects, as named in the log."""

_ROUNDING = 1e-9


def read_treatment(text: str) -> tuple[str, int]:
    """Return what a text such as ``warning@12`` or ``tiring=0.1@20`` changes, and its round.

    Raises:
        InputError: If it has no round.
    """
    what, _, number = text.rpartition("@")
    if not what or not number.isdecimal() or not int(number):
        example = f"{(what or text).partition('@')[0]}@12"
        problem = f"must have its round, from 1 on: write {example}, not {text!r}"
        raise InputError(problem, field="treatments")
    return what, int(number)


def setting(name: str, value: Any, number: int) -> str:
    """Return the treatment that sets a parameter in a round, as a text."""
    plain = plain_value(value)
    text = plain if isinstance(plain, str) else json.dumps(plain)
    return f"{name}={text}@{number}"


class Treatments:
    """The treatments of a run, by the rounds at whose beginning they are applied.

    Args:
        world: The world.
        texts: Those of the run.
        rounds: Number of rounds.
    """

    def __init__(self, world: World[Any], texts: Iterable[str], rounds: int) -> None:
        self._world, self._rounds = world, rounds
        self._methods = marked(type(world), TREATMENT)
        self._by_round: defaultdict[int, list[tuple[str, Callable[[], object]]]] = defaultdict(list)
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a treatment.

        Raises:
            InputError: If it has no round.
            FieldValueError: If the treatment, its round or its parameter does not exist, or a
                value has another type, is out of range, or is only read at the start.
        """
        what, number = read_treatment(text)
        name, is_value, value = what.partition("=")
        if not is_value and name not in self._methods:
            raise FieldValueError(unknown_name(type(self._world), name, "treatment", self._methods))
        if number > self._rounds:
            raise FieldValueError(f"treatment {text}: the run has the rounds 1 to {self._rounds}")
        try:
            values = self._read({name: value} if is_value else {})
        except TypeError as error:
            raise FieldValueError(f"treatment {text}: {error}") from None
        sets = partial(vars(self._world).update, values)
        self._by_round[number].append((what, sets if is_value else getattr(self._world, name)))

    def apply(self, number: int) -> None:
        """Apply the treatments of a round."""
        world, turns = self._world, self._world._run_turns
        for what, treat in self._by_round[number]:
            before = identify(parameter_values(world)) or {}
            treat()
            after = identify(parameter_values(world)) or {}
            changed = {name: value for name, value in after.items() if value != before[name]}
            self._read(changed)
            turns.events.emit(TREATMENT_APPLIED, treatment=what, parameters=changed)
        turns.assignments.log()

    def _read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters that may have these values from now on."""
        cls = type(self._world)
        if early := [name for name in values if name in cls.settled]:
            raise FieldValueError(f"{early[0]} cannot change during a run: it is read at the start")
        return read_parameters(cls, values)


class Assignments:
    """Assigns subjects to the arms of experiments.

    Each subject has one number per experiment, uniform in [0, 1) and keyed by (seed, experiment,
    subject). The arms divide this interval in their order. An assignment therefore shifts no other
    draw of a run and does not depend on other subjects.

    Args:
        seed: Seed of the run.
        events: Writes the run's log.
    """

    def __init__(self, seed: int, events: Events) -> None:
        self._seed, self._events = seed, events
        # by experiment: the slice of [0, 1) that each arm has
        self._experiments: dict[str, dict[str, tuple[float, float]]] = {}
        # the arm by experiment, kind of subject and subject, until it has been logged
        self._waiting: dict[tuple[str, Unit, str], str] = {}

    def assign(
        self, unit: Unit, subjects: Iterable[str], experiment: str, arm: str, share: float
    ) -> list[str]:
        """Return the subjects that are in an arm, and record all assignments for the log.

        Args:
            unit: What the subjects are.
            subjects: Their ids.
            experiment: The experiment.
            arm: The arm, which has its slice after those of earlier ones.
            share: The share of the subjects that are in it.

        Raises:
            FieldValueError: If the shares of an experiment exceed 1, or one is below 0 or changes.
        """
        low, high = self._slice(experiment, arm, share)
        chosen = []
        for subject in subjects:
            key = (experiment, unit, subject)
            if low <= RandomStream(self._seed, "treatment", *key).random() < high:
                chosen.append(subject)
                self._waiting[key] = arm
            else:
                # another arm of the experiment may still treat this subject
                self._waiting.setdefault(key, CONTROL)
        return chosen

    def log(self) -> None:
        """Log all assignments since the last call."""
        waiting, self._waiting = self._waiting, {}
        for (experiment, unit, subject), arm in waiting.items():
            about = {"experiment": experiment, "arm": arm, unit: subject}
            self._events.tell(TREATMENT_ASSIGNED, **about)

    def _slice(self, experiment: str, arm: str, share: float) -> tuple[float, float]:
        slices = self._experiments.setdefault(experiment, {})
        begin = max((high for _, high in slices.values()), default=0.0)
        low, high = slices.setdefault(arm, (begin, begin + share))
        if not share >= 0 or high > 1 + _ROUNDING or abs(high - low - share) > _ROUNDING:
            raise FieldValueError(
                f"arm {arm!r} of experiment {experiment!r}: a share must be 0 or more and stay the "
                f"same, and those of all arms ({', '.join(slices)}) at most 1 together, got {share}"
            )
        return low, high
