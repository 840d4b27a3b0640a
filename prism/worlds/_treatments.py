"""What a run does to its world when a round begins: treatments, and applying them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import FieldTypeError, FieldValueError, InputError, PrismError
from prism.files import parse_json
from prism.llm._model_text import model_in_text
from prism.reasoner._router import Router
from prism.runs._options import ALL_OTHERS, Later
from prism.statechart import BaseReasoner
from prism.statechart.names import identify
from prism.telemetry.events import TREATMENT_APPLIED
from prism.worlds._assignments import CONTROL
from prism.worlds._fields import parameter_values, plain_value, read_parameters
from prism.worlds._world import TREATMENT, World, marked


@dataclass(frozen=True)
class Treatment(ABC):
    """A change to a world at the beginning of a round.

    Args:
        round: The round at whose beginning it is applied, from 1 on.
        name: Its name in the log. Defaults to its kind.

    Attributes:
        kind: The name of this class in ``run.json``.

    Raises:
        InputError: If the round is invalid.
    """

    kind: ClassVar[str] = ""

    round: int
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Refuse an invalid round."""
        number: Any = self.round
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            problem = f"must be a whole number, 1 or more, got {number!r}"
            raise InputError(problem, field="round")
        object.__setattr__(self, "name", self.name or type(self).kind)
        if self.name == CONTROL:
            raise InputError(f"{CONTROL} is the arm without treatment", field="name")

    def check(self, world: World[Any]) -> None:  # noqa: B027  (most have nothing to refuse)
        """Refuse a treatment that does not fit the world, once it is set up."""

    @abstractmethod
    def apply(self, world: World[Any]) -> None:
        """Apply the treatment."""

    def to_table(self) -> dict[str, Any]:
        """Return it as ``run.json`` has it."""
        kept = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        return {"kind": type(self).kind, **{name: plain_value(kept[name]) for name in kept}}


@dataclass(frozen=True)
class SetParameters(Treatment):
    """Set parameters from a round on; ``"tiring=0.1@20"`` is one in a text.

    Args:
        round: The round at whose beginning they change.
        parameters: Their new values by name. Texts are converted to their types.
        name: Its name in the log, ``set`` by default.
    """

    kind: ClassVar[str] = "set"

    parameters: Mapping[str, Any] = field(default_factory=dict)

    def check(self, world: World[Any]) -> None:
        """Refuse unknown parameters, and invalid values.

        Raises:
            FieldTypeError: If a parameter is unknown, or a value has the wrong type.
            FieldValueError: If a value is out of its range.
        """
        try:
            read_parameters(type(world), self.parameters)
        except (TypeError, PrismError) as error:
            kind = FieldTypeError if isinstance(error, TypeError) else FieldValueError
            raise kind(f"treatment {self.name!r}: {error}") from None

    def apply(self, world: World[Any]) -> None:
        """Set the parameters."""
        for name, value in read_parameters(type(world), self.parameters).items():
            setattr(world, name, value)


@dataclass(frozen=True)
class SwitchModel(Treatment):
    """Let another model decide from a round on, for all agents or a share of them.

    The models of a run share its budget. A replay asks no model.

    Args:
        round: The round at whose beginning the switch happens.
        model: The model as a text, such as ``ollama:llama3.3``.
        reasoner: The reasoner to switch to, in a run made from Python with a reasoner.
        share: The share of the agents that get the new model, above 0 and at most 1.
        name: Its name in the log, and of the arm; ``model`` by default.

    Raises:
        InputError: If it names no model, or the share is invalid.
    """

    kind: ClassVar[str] = "model"

    model: str | None = None
    reasoner: BaseReasoner | None = field(default=None, compare=False, repr=False, kw_only=True)
    share: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a switch to nothing, and an invalid share."""
        super().__post_init__()
        if not 0 < self.share <= 1:
            problem = f"must be above 0 and at most 1, got {self.share!r}"
            raise InputError(problem, field="share")
        if self.reasoner is None:
            if not self.model:
                raise InputError("must change something: name a model", field="model")
            model_in_text(self.model)

    @property
    def title(self) -> str:
        """The name in the log of the agents that have this model."""
        return f"treatment {self.name}"

    def apply(self, world: World[Any]) -> None:
        """Switch to the model."""
        chosen = world.assign(self.name, self.share)
        router = world.turns.answers.reasoner
        if isinstance(router, Router):
            router.switch(self.title, [agent.agent_id for agent in chosen])

    def check(self, world: World[Any]) -> None:
        """Refuse a switch to nothing.

        Raises:
            FieldValueError: If nobody can be switched to.
        """
        router = world.turns.answers.reasoner
        if not (isinstance(router, Router) and router.can_switch_to(self.title)):
            raise FieldValueError(
                f"treatment {self.name!r}: there is nobody to switch to: give it a reasoner, as "
                f"in SwitchModel({self.round}, reasoner=Reasoner(...))"
            )


def treatment_in(text: str) -> str | SetParameters:
    """Return the treatment in a text such as ``tiring=0.1@5``; others are names and rounds."""
    name, is_value, rest = text.partition("=")
    value, _, number = rest.rpartition("@")
    if not is_value or not number.isdecimal():
        return text
    try:
        return SetParameters(int(number), {name: parse_json(value)})
    except InputError:
        return SetParameters(int(number), {name: value})


def tables_of(treatments: Iterable[str | Treatment]) -> list[Any]:
    """Return treatments as ``run.json`` has them: texts and objects."""
    return [each if isinstance(each, str) else each.to_table() for each in treatments]


def read_treatments(kept: Any, path: Path) -> list[str | Treatment]:
    """Read what `tables_of` returned.

    Raises:
        InputError: If it was edited and is no longer valid.
    """
    classes: Mapping[str, Any] = {each.kind: each for each in (SetParameters, SwitchModel)}
    try:
        return [
            each
            if isinstance(each, str)
            else classes[each["kind"]](**{key: each[key] for key in each if key != "kind"})
            for each in kept
        ]
    except (TypeError, ValueError, LookupError, PrismError) as error:
        raise InputError(f"cannot be read: {error}", path=path, field="treatments") from None


class Treating:
    """The treatments of a run, by the rounds at whose beginning they are applied.

    Args:
        world: The world.
        treatments: Those of the run: methods of its class as ``warning@12``, and others.
        rounds: Number of rounds.

    Raises:
        FieldValueError: If a treatment or its round does not exist.
    """

    def __init__(
        self, world: World[Any], treatments: Sequence[str | Treatment], rounds: int
    ) -> None:
        self._world = world
        self._by_round: dict[int, list[str | Treatment]] = {}
        own = marked(type(world), TREATMENT)
        # a run that is shorter than the class expects leaves out later treatments
        for name, number in own.items():
            if number:
                self._by_round.setdefault(number, []).append(name)
        for each in treatments:
            if isinstance(each, Treatment):
                name, number = each.name, each.round
            else:
                name, number = _read(type(world), own, each, rounds)
            if number > rounds:
                raise FieldValueError(f"treatment {name}@{number}: the run has {rounds} rounds")
            added = each if isinstance(each, Treatment) else name
            self._by_round.setdefault(number, []).append(added)

    def check(self) -> None:
        """Refuse treatments that do not fit the world, once it is set up."""
        for each in (each for those in self._by_round.values() for each in those):
            if isinstance(each, Treatment):
                each.check(self._world)

    def apply(self, number: int) -> None:
        """Apply the treatments of a round."""
        world = self._world
        for each in self._by_round.get(number, ()):
            before = identify(parameter_values(world)) or {}
            if isinstance(each, Treatment):
                each.apply(world)
            else:
                getattr(world, each)()
            after = identify(parameter_values(world)) or {}
            changed = {key: after[key] for key in after if after[key] != before[key]}
            read_parameters(type(world), changed)
            world.turns.emit(
                TREATMENT_APPLIED,
                treatment=each if isinstance(each, str) else each.name,
                parameters=changed,
                **({} if isinstance(each, str) else {"settings": _settings(each)}),
            )
        world.turns.log_assigned()


def _read(cls: type, own: Mapping[str, int], text: str, rounds: int) -> tuple[str, int]:
    """Return name and round of a treatment such as ``warning@12``."""
    name, _, number = text.partition("@")
    if name not in own:
        known = ", ".join(own) or "none"
        raise FieldValueError(f"{cls.__name__} has no treatment {name!r}: it has {known}")
    if not number.isdecimal():
        example = f"{name}@{min(12, rounds)}"
        raise FieldValueError(f"treatment {text!r} needs its round: write {example}")
    if not 1 <= int(number) <= rounds:
        begins = f": write {name}@1 for one from the beginning" if not int(number) else ""
        raise FieldValueError(f"treatment {text}: the run has the rounds 1 to {rounds}{begins}")
    return name, int(number)


def _settings(treatment: Treatment) -> dict[str, Any]:
    table = treatment.to_table() if getattr(treatment, "reasoner", None) is None else {}
    return {name: value for name, value in table.items() if name not in ("round", "name")}


def later_models(treatments: Iterable[Any]) -> Later:
    """Return the models that a run switches to, by their names in the log."""
    return {
        each.title: each.model or ""
        for each in treatments
        if isinstance(each, SwitchModel) and each.reasoner is None
    }


def with_reasoners(reasoner: Any, treatments: Iterable[Any]) -> Any:
    """Return the reasoner of a run whose treatments have reasoners of their own.

    Raises:
        FieldTypeError: If one of them is not a `BaseReasoner`.
    """
    others = {
        each.title: each.reasoner
        for each in treatments
        if isinstance(each, SwitchModel) and each.reasoner is not None
    }
    if not others:
        return reasoner

    parts: dict[str, Any] = {ALL_OTHERS: reasoner, **others}
    for each in parts.values():
        if not isinstance(each, BaseReasoner):
            raise FieldTypeError(
                "where a treatment switches reasoners, all must derive from BaseReasoner; "
                f"{type(each).__name__} does not"
            )
    return Router(parts, lambda _agent: ALL_OTHERS)
