"""Carrying out the treatments of a run, and telling of them in its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from prism.errors import FieldValueError, InputError, PrismError
from prism.telemetry.events import TREATMENT_APPLIED, TREATMENT_ASSIGNED
from prism.worlds._host import RunHost
from prism.worlds._kinds import Parts, treatments_by_round
from prism.worlds._parameters import parameters_told
from prism.worlds._treatments import SharedTreatment, Treatment
from prism.worlds._world import World

Emit = Callable[..., None]


class Treating:
    """The treatments of a run, by the rounds at whose beginning they are applied.

    Args:
        world: The world.
        parts: What its class marks.
        given: Treatments that the run asks for: of the world's class as ``warning@12``, and
            ready-made ones.
        rounds: Number of rounds.

    Raises:
        FieldValueError: If there is no such treatment, or no such round; or two that assign have
            one name.
    """

    def __init__(
        self, world: World[Any], parts: Parts, given: Iterable[str | Treatment], rounds: int
    ) -> None:
        everything = list(given)
        self.made: list[Treatment] = [each for each in everything if isinstance(each, Treatment)]
        self._world = world
        texts = [each for each in everything if not isinstance(each, Treatment)]
        self._by_round: dict[int, list[str | Treatment]] = {
            number: list(names)
            for number, names in treatments_by_round(world, parts, texts, rounds).items()
        }
        for each in self.made:
            if each.round > rounds:
                problem = (
                    f"treatment {each.name}@{each.round}: the run has the rounds 1 to {rounds}"
                )
                raise _placed(each, FieldValueError(problem))
            self._by_round.setdefault(each.round, []).append(each)

        arms = Counter(
            (each.experiment, each.name) for each in self.made if isinstance(each, SharedTreatment)
        )
        for (_, name), count in arms.items():
            if count > 1:
                raise FieldValueError(
                    f"two treatments are called {name!r}: give each a name of its own"
                )

    def check(self) -> None:
        """Refuse what cannot be done to the world, once it is set up."""
        for each in self.made:
            try:
                each.check(self._world)
            except PrismError as error:
                raise _placed(each, error) from None

    def apply(self, number: int, host: RunHost, emit: Emit) -> None:
        """Apply the treatments of a round."""
        for each in self._by_round.get(number, ()):
            before = parameters_told(self._world)
            host.may_set_parameters = True
            try:
                self._carry_out(each)
            finally:
                host.may_set_parameters = False

            after = parameters_told(self._world)
            changed = {key: value for key, value in after.items() if value != before[key]}
            if isinstance(each, Treatment):
                emit(
                    TREATMENT_APPLIED,
                    treatment=each.name,
                    parameters=changed,
                    settings=_settings(each),
                )
            else:
                emit(TREATMENT_APPLIED, treatment=each, parameters=changed)

        tell_assigned(host, emit)

    def go_on(self, rounds: int, host: RunHost) -> None:
        """Go on with what lasts, in a run that is resumed after some rounds."""
        for number in range(1, rounds + 1):
            for each in self._by_round.get(number, ()):
                if isinstance(each, Treatment):
                    each.go_on(self._world)

        # the log has told of them already
        list(host.assignments.drain())

    def _carry_out(self, each: str | Treatment) -> None:
        if isinstance(each, Treatment):
            each.apply(self._world)
        else:
            getattr(self._world, each)()


def _placed(treatment: Treatment, error: PrismError) -> PrismError:
    """Return an error about a treatment that says where it was read, if anywhere."""
    if treatment.place is None:
        return error

    path, line = treatment.place
    return InputError(str(error), path=path, line=line)


def tell_assigned(host: RunHost, emit: Emit) -> None:
    """Have the log say who has been assigned since the last time."""
    for keys in host.assignments.drain():
        emit(TREATMENT_ASSIGNED, **keys)


def _settings(treatment: Treatment) -> dict[str, Any]:
    """Return what a ready-made treatment is, without what its event says already."""
    table = treatment.to_table() if getattr(treatment, "reasoner", None) is None else {}
    return {name: value for name, value in table.items() if name not in ("round", "name")}
