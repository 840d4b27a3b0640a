"""What a run does to its world when a round begins: ready-made treatments, and applying them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import FieldTypeError, FieldValueError, InputError, PrismError
from prism.files import parse_json
from prism.llm._addresses import check_address, credentials, full_address
from prism.llm._assignments import ModelAssignment
from prism.llm._settings import KEYS, AgentSettings, Hosts, given_settings
from prism.reasoner._router import Router
from prism.runs._assigned import ALL_OTHERS
from prism.runs._options import PolicyOptions, options_of
from prism.statechart import BaseReasoner
from prism.telemetry.events import TREATMENT_APPLIED, TREATMENT_ASSIGNED
from prism.worlds._asking import Decider
from prism.worlds._assignments import CONTROL, Assignments
from prism.worlds._fields import plain_value
from prism.worlds._host import RunHost
from prism.worlds._kinds import Parts, treatments_by_round
from prism.worlds._parameters import (
    parameter_values,
    parameters_told,
    parsed_parameters,
    set_parameters,
)
from prism.worlds._phase import Phase
from prism.worlds._world import World


@dataclass(frozen=True, slots=True)
class Treatment(ABC):
    """A change to a world at the beginning of a round.

    Your own class has fields for its settings, a ``kind`` that names it in ``run.json``, and a
    method `apply`. A treatment may be given to several worlds, and anything that it stores itself
    is lost on resuming, so it should only change parameters, state, or the agents.

    Args:
        round: The round at whose beginning it is applied, from 1 on.
        name: Its name in the log. Defaults to its kind.

    Attributes:
        kind: The name of this class in ``run.json``.

    Raises:
        InputError: If a field is invalid.
    """

    kind: ClassVar[str] = ""

    round: int
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Refuse an invalid round."""
        require_count("round", self.round)
        object.__setattr__(self, "name", self.name or type(self).kind)
        if self.name == CONTROL:
            raise InputError(f"{CONTROL} is the arm without treatment", field="name")

    def check(self, world: World[Any]) -> None:  # noqa: B027  (most have nothing to refuse)
        """Refuse a treatment that does not fit the world, before its first round.

        Args:
            world: The world, after its ``setup``.

        Raises:
            PrismError: If it is refused.
        """

    @abstractmethod
    def apply(self, world: World[Any]) -> None:
        """Apply the treatment. Every class defines this.

        Args:
            world: The world.
        """

    def go_on(self, world: World[Any]) -> None:  # noqa: B027  (most do not last)
        """Restore lasting effects when a run is resumed after this was applied.

        Args:
            world: The world.
        """

    def to_table(self) -> dict[str, Any]:
        """Return it as ``run.json`` has it, without defaults."""
        table: dict[str, Any] = {"kind": type(self).kind, "round": self.round}
        for each in settings_of(type(self)):
            value = getattr(self, each.name)
            default = each.default_factory() if callable(each.default_factory) else each.default
            if each.name != "round" and value != default:
                table[key_of(type(self), each.name)] = plain_value(value)

        if self.name == type(self).kind:
            del table["name"]

        return table


def require_count(name: str, value: Any) -> None:
    """Refuse a value that is not a whole number of at least 1.

    Raises:
        InputError: If it is not; the message names the field.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"must be a whole number, 1 or more, got {value!r}", field=name)


def require_agents(world: World[Any], treatment: str, names: Iterable[str]) -> None:
    """Refuse agents that a run does not have.

    Raises:
        FieldValueError: If an agent is not in the run.
    """
    known = {agent.agent_id for agent in world.agents}
    if strangers := [name for name in names if name not in known]:
        raise FieldValueError(
            f"treatment {treatment!r}: there is no agent {strangers[0]!r} in the run"
        )


def tables_of(treatments: Iterable[str | Treatment]) -> list[Any]:
    """Return treatments as ``run.json`` has them: texts and tables."""
    return [each if isinstance(each, str) else each.to_table() for each in treatments]


def read_treatments(kept: Any, cls: type[World[Any]], path: Path) -> list[str | Treatment]:
    """Read what `tables_of` returned.

    Args:
        kept: The treatments in ``run.json``.
        cls: The world's class.
        path: The file, for messages.

    Raises:
        InputError: If it was edited and is no longer valid.
    """
    own = [each for base in cls.__mro__ for each in vars(base).get("treatment_classes", ())]
    classes = {each.kind: each for each in (SetParameters, SwitchModel, *own)}
    try:
        return [each if isinstance(each, str) else _made(each, classes) for each in kept]
    except (TypeError, ValueError, LookupError, PrismError) as error:
        raise InputError(f"cannot be read: {error}", path=path, field="treatments") from None


def _made(table: Mapping[str, Any], classes: Mapping[str, type[Treatment]]) -> Treatment:
    cls = classes[table["kind"]]
    names = {key_of(cls, each.name): each.name for each in settings_of(cls)}
    given: dict[str, Any] = {
        names[name]: tuple(each) if isinstance(each, list) else each
        for name, each in table.items()
        if name != "kind"
    }

    return cls(**given)


def set_by_text(text: str) -> str | SetParameters:
    """Return the treatment in a text such as ``tiring=0.1@5``; others are names and rounds."""
    name, is_value, rest = text.partition("=")
    value, _, number = rest.rpartition("@")
    if not is_value or not number.isdecimal():
        return text

    try:
        read = parse_json(value)
    except InputError:
        read = value

    return SetParameters(int(number), {name: read})


def key_of(cls: type[Treatment], name: str) -> str:
    """Return the name that a field of a class of treatments has in ``run.json``."""
    return KEYS.get(name, name) if issubclass(cls, AgentSettings) else name


def settings_of(cls: type[Treatment]) -> list[Field[Any]]:
    """Return the fields of a class of treatments that ``run.json`` has."""
    return [each for each in fields(cls) if each.compare]


@dataclass(frozen=True, slots=True)
class SharedTreatment(Treatment):
    """A treatment of some agents, or of what some of them publish.

    The draw is keyed by (seed, experiment, subject): it shifts no other random number of the run
    and is the same in every run with this seed. Treatments of one ``experiment`` are its
    arms: nobody is in two of them, and subjects in none are the control group.

    Args:
        round: The round at whose beginning it is applied, from 1 on.
        share: The share of the candidates, above 0 and at most 1.
        agents: Ids of the candidates. Defaults to all agents.
        where: Conditions on the candidates: attributes or fields by name, each with a value, or
            several in a list. ``archetype`` and ``kind`` (the class) are allowed.
        experiment: Name of the experiment. Defaults to the treatment's name.
        name: Name of the arm, and of the treatment in the log. Defaults to its kind.
    """

    share: float = field(default=1.0, kw_only=True)
    agents: tuple[str, ...] = field(default=(), kw_only=True)
    where: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    experiment: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Refuse an invalid share."""
        Treatment.__post_init__(self)
        share: Any = self.share
        if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 < share <= 1:
            raise InputError(f"must be above 0 and at most 1, got {share!r}", field="share")
        for name, wanted in self.where.items():
            options = wanted if isinstance(wanted, (list, tuple)) else [wanted]
            if not all(isinstance(each, (str, int, float)) for each in options):
                problem = f"must be a text, a number, true or false, or a list of such: {wanted!r}"
                raise InputError(problem, field=f"where.{name}")

        object.__setattr__(self, "agents", tuple(self.agents))
        object.__setattr__(self, "experiment", self.experiment or self.name)

    def check(self, world: World[Any]) -> None:
        """Refuse unknown agents, and attributes that no agent has."""
        require_agents(world, self.name, self.agents)
        for name in self.where:
            if not any(_attribute(agent, name) is not _MISSING for agent in world.agents):
                raise FieldValueError(
                    f"treatment {self.name!r}: no agent has an attribute {name!r}"
                )

        self.arms_of(world).add_arm(self.experiment, self.name, self.share)

    def candidates(self, world: World[Any]) -> list[Any]:
        """Return the candidates, in their order."""
        return [agent for agent in world.agents if self.concerns(agent)]

    def concerns(self, agent: Any) -> bool:
        """Return whether an agent is a candidate."""
        if self.agents and agent.agent_id not in self.agents:
            return False

        return all(_fits(_attribute(agent, name), wanted) for name, wanted in self.where.items())

    def treated(self, world: World[Any], candidates: Iterable[Any]) -> list[Any]:
        """Return the treated agents among the candidates, and log who is treated.

        Args:
            world: The world.
            candidates: The candidates.
        """
        by_id = {agent.agent_id: agent for agent in candidates}
        chosen = self.arms_of(world).assign("agent_id", by_id, self.experiment, self.name)
        return [by_id[name] for name in chosen]

    def arms_of(self, world: World[Any]) -> Assignments:
        """Return the assignments of a run."""
        return world._hosted("a treatment").assignments

    def to_table(self) -> dict[str, Any]:
        """Return it as ``run.json`` has it, without defaults."""
        table = Treatment.to_table(self)
        if self.experiment == self.name:
            table.pop("experiment", None)

        return table


@dataclass(frozen=True, slots=True)
class SetParameters(Treatment):
    """Set parameters from a round on.

    Args:
        round: The round at whose beginning they change.
        parameters: Their new values by name. Texts are converted to their types.
        name: Its name in the log, ``set`` by default.
    """

    kind: ClassVar[str] = "set"

    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a treatment that changes nothing."""
        Treatment.__post_init__(self)
        if not self.parameters:
            raise InputError("must set something: parameters = {name = value}", field="parameters")

    def check(self, world: World[Any]) -> None:
        """Refuse unknown parameters, and invalid values."""
        check_parameters(world, self.parameters, self.name)

    def apply(self, world: World[Any]) -> None:
        """Set the parameters."""
        set_parameters(world, self.parameters)


def check_parameters(world: World[Any], parameters: Mapping[str, Any], treatment: str) -> None:
    """Refuse unknown parameters, and invalid values.

    Raises:
        FieldTypeError: If a parameter is unknown, or a value has the wrong type.
        FieldValueError: If a value is out of its range.
    """
    cls = type(world)
    try:
        cls(**{**parameter_values(world), **parsed_parameters(cls, parameters)})
    except (TypeError, PrismError) as error:
        kind = FieldTypeError if isinstance(error, TypeError) else FieldValueError
        raise kind(f"treatment {treatment!r}: {error}") from None


_MISSING = object()
"""Stands in for an attribute that an agent lacks."""


def _attribute(agent: Any, name: str) -> Any:
    """Return an attribute of an agent; for a kind or an archetype, its name."""
    if name == "kind":
        return type(agent).__name__

    own = getattr(agent, "attributes", None)
    value = getattr(agent, name, _MISSING)
    if value is _MISSING and isinstance(own, Mapping):
        value = own.get(name, _MISSING)

    return plain_value(getattr(value, "name", value) if name == "archetype" else value)


def _fits(value: Any, wanted: Any) -> bool:
    options: Sequence[Any] = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return value in [plain_value(option) for option in options]


class Treating:
    """The treatments of a run, by the rounds at whose beginning they are applied.

    Args:
        world: The world.
        parts: The marked methods of its class.
        given: The treatments of the run: those of the world's class as ``warning@12``, and
            ready-made ones.
        rounds: Number of rounds.

    Raises:
        FieldValueError: If a treatment or its round does not exist, or two treatments that assign
            agents have the same name.
    """

    def __init__(
        self, world: World[Any], parts: Parts, given: Iterable[str | Treatment], rounds: int
    ) -> None:
        self._world = world
        self.made: list[Treatment] = []
        texts: list[str] = []
        for each in given:
            (self.made if isinstance(each, Treatment) else texts).append(each)  # type: ignore[arg-type]

        own = treatments_by_round(world, parts, texts, rounds)
        self._by_round: dict[int, list[str | Treatment]] = {
            number: [*names] for number, names in own.items()
        }
        for each in self.made:
            if each.round > rounds:
                raise FieldValueError(
                    f"treatment {each.name}@{each.round}: the run has the rounds 1 to {rounds}"
                )
            self._by_round.setdefault(each.round, []).append(each)

        _refuse_twins(self.made)

    def check(self) -> None:
        """Refuse treatments that do not fit the world, once it is set up."""
        for each in self.made:
            each.check(self._world)

    def is_due(self, number: int) -> bool:
        """Return whether a round has treatments."""
        return number in self._by_round

    def apply(self, number: int, host: RunHost) -> None:
        """Apply the treatments of a round."""
        for each in self._by_round.get(number, ()):
            before = parameters_told(self._world)
            with host.in_phase(Phase.TREATING):
                self._carry_out(each)

            after = parameters_told(self._world)
            changed = {key: value for key, value in after.items() if value != before[key]}
            if isinstance(each, Treatment):
                host.emit(
                    TREATMENT_APPLIED,
                    treatment=each.name,
                    parameters=changed,
                    settings=_settings(each),
                )
            else:
                host.emit(TREATMENT_APPLIED, treatment=each, parameters=changed)

        tell_assigned(host)

    def go_on(self, rounds: int, host: RunHost) -> None:
        """Restore lasting effects in a run that is resumed after some rounds."""
        for number in range(1, rounds + 1):
            for each in self._by_round.get(number, ()):
                if isinstance(each, Treatment):
                    each.go_on(self._world)

        # they are already in the log
        list(host.assignments.drain())

    def _carry_out(self, each: str | Treatment) -> None:
        if isinstance(each, Treatment):
            each.apply(self._world)
        else:
            getattr(self._world, each)()


def _refuse_twins(made: Iterable[Treatment]) -> None:
    shared = [each for each in made if isinstance(each, SharedTreatment)]
    arms = Counter((each.experiment, each.name) for each in shared)
    if twins := [name for (_, name), count in arms.items() if count > 1]:
        problem = f"two treatments are called {twins[0]!r}: give each its own name"
        raise FieldValueError(problem)


def tell_assigned(host: RunHost) -> None:
    """Log the assignments since the last call."""
    for keys in host.assignments.drain():
        host.emit(TREATMENT_ASSIGNED, **keys)


def _settings(treatment: Treatment) -> dict[str, Any]:
    """Return the settings of a ready-made treatment, without those that its event already has."""
    table = treatment.to_table() if getattr(treatment, "reasoner", None) is None else {}
    return {name: value for name, value in table.items() if name not in ("round", "name")}


@dataclass(frozen=True)
class SwitchModel(AgentSettings, SharedTreatment):
    """Switch to another model, or other settings, from a round on.

    The models of a run share its budget, its file of answers and, if they are on the same server,
    its slots. Costs are reported by model. A replay asks no model, so it switches nothing. If the
    old model also writes, so does the new one.

    Args:
        round: The round at whose beginning the switch happens.
        model: Its name; by default the run's model.
        hosts: Addresses of its servers; by default the run's.
        server: As for `prism.llm.Model`, and so are the other settings: ``mode``,
            ``pick``, ``think``, ``temperature``, ``concurrency``, ``timeout`` and ``patience``.
        reasoner: The reasoner to switch to, in a run made from Python with a reasoner.
        share: The share of the agents that get the new model, above 0 and at most 1.
        agents: Ids of the agents that may be drawn; by default all.
        where: Attributes that these agents have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: Its name in the log; ``model`` by default.
    """

    kind: ClassVar[str] = "model"

    model: str | None = None
    hosts: Hosts | None = None
    reasoner: BaseReasoner | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a switch that changes nothing, and addresses that no file may contain."""
        SharedTreatment.__post_init__(self)
        AgentSettings.__post_init__(self)
        if self.reasoner is None and not self._settings():
            raise InputError("must change something: name a model", field="model")

        for host in self.hosts or ():
            try:
                check_address(full_address(host))
            except FieldValueError as error:
                raise InputError(str(error).removeprefix("host "), field="hosts") from None
            if credentials(full_address(host)) is not None:
                problem = "must have no name and password: run.json keeps a treatment as it is"
                raise InputError(problem, field="hosts")

        self.assignment()

    @property
    def title(self) -> str:
        """The name in the log of the agents that have this model."""
        return f"treatment {self.name}"

    def assignment(self) -> ModelAssignment:
        """Return the changed settings.

        Raises:
            InputError: If a setting is invalid.
        """
        return ModelAssignment("agent", self.name, **self._settings())

    def check(self, world: World[Any]) -> None:
        """Refuse unknown agents, and a switch to nothing."""
        SharedTreatment.check(self, world)
        host = world._hosted("a treatment")
        router = host.router
        if not host.is_replayed and (router is None or not router.can_switch_to(self.title)):
            raise FieldValueError(
                f"treatment {self.name!r}: there is nobody to switch to: give it a reasoner, as "
                f"in SwitchModel({self.round}, reasoner=Reasoner(...))"
            )

    def apply(self, world: World[Any]) -> None:
        """Switch to the model."""
        host = world._hosted("a treatment")
        chosen = self.treated(world, self.candidates(world))
        if host.router is not None:
            host.router.switch(self.title, [agent.agent_id for agent in chosen])

    def go_on(self, world: World[Any]) -> None:
        """Switch to the model again."""
        self.apply(world)

    def to_table(self) -> dict[str, Any]:
        """Return it as ``run.json`` has it.

        Raises:
            InputError: If it has a reasoner, which no file can hold.
        """
        if self.reasoner is not None:
            raise InputError("cannot be kept: name a model instead", field="reasoner")

        return SharedTreatment.to_table(self)

    def _settings(self) -> dict[str, Any]:
        return given_settings(self)


def later_models(treatments: Iterable[Any]) -> Mapping[str, ModelAssignment]:
    """Return the models that a run switches to, by their names in the log."""
    return {
        each.title: each.assignment()
        for each in treatments
        if isinstance(each, SwitchModel) and each.reasoner is None
    }


def require_models(reasoner: Any, treatments: Iterable[Any]) -> None:
    """Refuse models that cannot be used, before anything is made.

    Raises:
        InputError: If there is one; the message names the key.
    """
    for assignment in later_models(treatments).values():
        if reasoner is None or isinstance(reasoner, PolicyOptions):
            options_of(assignment)
        elif hasattr(reasoner, "for_those"):
            reasoner.for_those(assignment)


def with_reasoners(reasoner: Decider, treatments: Iterable[Any]) -> Decider:
    """Return the reasoner of a run whose treatments have reasoners of their own.

    Raises:
        FieldTypeError: If one of them is not a `BaseReasoner`.
        FieldValueError: If they have budgets of their own.
    """
    given = {
        each.title: each.reasoner
        for each in treatments
        if isinstance(each, SwitchModel) and each.reasoner is not None
    }
    if not given:
        return reasoner

    parts: dict[str, Any] = {ALL_OTHERS: reasoner, **given}
    for each in parts.values():
        if not isinstance(each, BaseReasoner):
            raise FieldTypeError(
                "where a treatment switches reasoners, all must derive from BaseReasoner; "
                f"{type(each).__name__} does not"
            )

    return Router(parts, lambda _agent: ALL_OTHERS)
