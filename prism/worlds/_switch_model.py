"""Another model from a round on, for all agents or some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from prism.errors import FieldValueError, InputError
from prism.llm._addresses import check_address, credentials
from prism.runs._assigned import ALL_OTHERS, ModelAssignment, ModelSwitch
from prism.runs._credentials import full_address
from prism.runs._options import PolicyOptions, options_of
from prism.runs._settings import ModelSettings, given_settings
from prism.statechart import BaseReasoner
from prism.statechart.reasoner._by_agent import ReasonerByAgent
from prism.worlds._asking import Decider
from prism.worlds._treatments import SharedTreatment
from prism.worlds._world import World


@dataclass(frozen=True)
class SwitchModel(ModelSettings, SharedTreatment):
    """Another model, or the same one with other settings, from a round on.

    The models of a run share its budget, its file of answers and, on a server that both are asked
    at, its slots; the run tells its costs by model. In a replay nobody is asked, so that nothing is
    switched. Where one model decides and writes, the other one does, too.

    Args:
        round: The round from whose beginning on it is asked.
        model: Its name; by default the one of the run.
        host: Addresses of its servers; by default those of the run.
        server: As for `prism.runs.ModelOptions`, and so are the other settings: ``mode``,
            ``pick``, ``think``, ``temperature``, ``concurrency``, ``timeout`` and ``patience``.
        reasoner: Who decides instead, in a run that is made from Python with a reasoner.
        share: The share of the agents who have it, above 0 and at most 1.
        agents: Ids of the agents who come into question; by default all.
        where: What these agents have.
        experiment: Name of the experiment; by default the treatment's own name.
        name: What the log calls it; ``model`` by default.
    """

    kind: ClassVar[str] = "model"

    model: str | None = None
    host: tuple[str, ...] = ()
    reasoner: BaseReasoner | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse to switch nothing, and addresses that no file may have."""
        SharedTreatment.__post_init__(self)
        ModelSettings.__post_init__(self)
        if self.reasoner is None and not self._settings():
            raise InputError("must say what is other than before: name a model", field="model")

        for host in self.host:
            try:
                check_address(full_address(host))
            except FieldValueError as error:
                raise InputError(str(error).removeprefix("host "), field="host") from None
            if credentials(full_address(host)) is not None:
                problem = "must have no name and password: run.json keeps a treatment as it is"
                raise InputError(problem, field="host")

        self.assignment()

    @property
    def title(self) -> str:
        """What the run's log calls those who have this model."""
        return f"treatment {self.name}"

    def assignment(self) -> ModelAssignment:
        """Return what is other than before.

        Raises:
            InputError: If a setting cannot be.
        """
        return ModelAssignment("agent", self.name, **self._settings())

    def check(self, world: World[Any]) -> None:
        """Refuse agents that there are not, and a switch to nobody."""
        SharedTreatment.check(self, world)
        host: Any = world._hosted("a treatment")
        if host.model_switch is None and not host.is_replayed:
            raise FieldValueError(
                f"treatment {self.name!r}: nobody is there to switch to: give it a reasoner, as in "
                f"SwitchModel({self.round}, reasoner=Reasoner(...))"
            )

    def apply(self, world: World[Any]) -> None:
        """Switch to the model."""
        host: Any = world._hosted("a treatment")
        chosen = self.treated(world, self.candidates(world))
        if host.model_switch is not None:
            host.model_switch.switch(self.title, [agent.agent_id for agent in chosen])

    def go_on(self, world: World[Any]) -> None:
        """Switch to the model again."""
        self.apply(world)

    def to_table(self) -> dict[str, Any]:
        """Return it as a table of a file of treatments has it.

        Raises:
            InputError: If it has a reasoner, which no file can hold.
        """
        if self.reasoner is not None:
            raise InputError("cannot be kept: name a model instead", field="reasoner")

        return SharedTreatment.to_table(self)

    def _settings(self) -> dict[str, Any]:
        return given_settings(self)


def later_models(treatments: Iterable[Any]) -> Mapping[str, ModelAssignment]:
    """Return the models that a run switches to, by what its log calls them."""
    return {
        each.title: each.assignment()
        for each in treatments
        if isinstance(each, SwitchModel) and each.reasoner is None
    }


def require_models(reasoner: Any, treatments: Iterable[Any]) -> None:
    """Refuse models that cannot be asked, before anything is made.

    Raises:
        InputError: If there is one; names the key.
    """
    for assignment in later_models(treatments).values():
        if reasoner is None or isinstance(reasoner, PolicyOptions):
            options_of(assignment)
        elif hasattr(reasoner, "for_those"):
            reasoner.for_those(assignment)


def with_reasoners(reasoner: Decider, treatments: Iterable[Any]) -> Decider:
    """Return who decides in a run whose treatments bring reasoners of their own.

    Raises:
        FieldValueError: If they have budgets of their own.
    """
    given = {
        each.title: each.reasoner
        for each in treatments
        if isinstance(each, SwitchModel) and each.reasoner is not None
    }
    if not given:
        return reasoner

    first: Any = reasoner

    return ReasonerByAgent(
        {ALL_OTHERS: first, **given}, ModelSwitch(lambda _agent: ALL_OTHERS, given)
    )
