"""Models for some of a run's agents: who they are, and the settings that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from prism.errors import InputError
from prism.llm._model_text import model_in_text
from prism.llm._settings import (
    AgentSettings,
    given_settings,
    hedge_setting,
    names_of,
    plain_settings,
)

By = Literal["agent", "archetype", "kind", "chart"]

BYS: tuple[By, ...] = get_args(By)
"""What agents can be told apart by; what comes first goes before."""


@dataclass(frozen=True, kw_only=True)
class ModelAssignment(AgentSettings):
    """A model for some of a run's agents; None stands for what the run says for all.

    Agents are told apart by what they are called (``agent``, a pattern such as ``user_1*``), by
    their ``archetype``, by their ``kind`` (the name of their class), or by their ``chart``. Where
    several fit an agent, that order decides, then the order in which they are given.

    Args:
        by: What agents are told apart by.
        name: Name of the archetype, kind or chart, or a pattern of names.
        model: As for `Model`, and so are the other settings that a file of models may have in a
            table: the servers are not those of the run where ``server`` is another, and its prices
            are unknown where ``model`` or ``server`` is.
        place: Where it was read, for messages.

    Raises:
        InputError: If agents cannot be told apart by that, or a setting has an invalid value.
    """

    by: By = field(kw_only=False)
    name: str = field(kw_only=False)
    hedge: bool | None = hedge_setting()
    place: tuple[str, int | None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse an unknown way to tell agents apart, and invalid settings."""
        if self.by not in BYS:
            raise InputError(f"must be one of {', '.join(BYS)}, got {self.by!r}", field="by")

        AgentSettings.__post_init__(self)

    @property
    def title(self) -> str:
        """What the run's log calls those that it is for, such as ``archetype lurker``."""
        return f"{self.by} {self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        """What differs from the run."""
        return given_settings(self)

    def error(self, problem: str, setting: str | None = None) -> InputError:
        """Return an error that says where this was read."""
        path, line = self.place or (None, None)
        name = f"{self.by}.{self.name}" + (f".{setting}" if setting else "")
        return InputError(problem, path=path, line=line, field=name)

    def to_config(self) -> dict[str, Any]:
        """Return this as plain data."""
        return {"by": self.by, "name": self.name, **plain_settings(self)}


def assignments_of(given: Any) -> tuple[ModelAssignment, ...]:
    """Return what is assigned to some agents, as a user says it.

    Args:
        given: By what agents are told apart by and its name, such as ``"archetype superuser"``, the
            settings of their model, or a text as `prism.llm.Model.of` reads it.

    Raises:
        InputError: If it is something else.
    """
    if isinstance(given, tuple) and all(isinstance(each, ModelAssignment) for each in given):
        return given
    if not isinstance(given, Mapping):
        problem = f"must map agents to settings ({_EXAMPLE}), got {type(given).__name__}"
        raise InputError(problem, field="assigned")

    return tuple(_assignment(title, settings) for title, settings in given.items())


_EXAMPLE = "such as {'archetype superuser': {'model': 'llama3.3'}}"


def _assignment(title: Any, settings: Any) -> ModelAssignment:
    by, _, name = title.partition(" ") if isinstance(title, str) else ("", "", "")
    if by not in BYS or not name:
        problem = f"must be one of {', '.join(BYS)} with a name, {_EXAMPLE}, got {title!r}"
        raise InputError(problem, field="assigned")

    told = model_in_text(settings) if isinstance(settings, str) else settings
    try:
        return ModelAssignment(by, name, **told)
    except TypeError:
        known = ", ".join(names_of(ModelAssignment))
        problem = f"sets for {title!r} what must be the same for all agents: it may set {known}"
        raise InputError(problem, field="assigned") from None
