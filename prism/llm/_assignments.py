"""Models for some of a run's agents: the selection of agents, and the settings that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from prism.errors import InputError
from prism.llm._model_text import model_in_text
from prism.llm._settings import AgentSettings, given_settings, settings_of, to_plain

By = Literal["agent", "archetype", "kind", "chart"]

BYS: tuple[By, ...] = get_args(By)
"""The ways to select agents, in order of precedence."""


@dataclass(frozen=True, kw_only=True)
class ModelAssignment(AgentSettings):
    """A model for some of a run's agents; None stands for the run's setting.

    Agents are selected by name (``agent``, a pattern such as ``user_1*``), by their ``archetype``,
    by their ``kind`` (the name of their class), or by their ``chart``. If several fit an agent, the
    first in this order counts, then the first given.

    Args:
        by: How agents are selected.
        name: Name of the archetype, kind or chart, or a pattern of names.
        model: As for `Model`, and so are the other settings that a table in a file of models may
            have. If ``server`` differs from the run's, the run's hosts do not apply; if ``model``
            or ``server`` differs, its prices do not, either.
        place: The file and line that it comes from, for messages.

    Raises:
        InputError: If agents cannot be selected in this way, or a setting has an invalid value.
    """

    by: By = field(kw_only=False)
    name: str = field(kw_only=False)
    place: tuple[str, int | None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse an unknown selection of agents, and invalid settings."""
        if self.by not in BYS:
            raise InputError(f"must be one of {', '.join(BYS)}, got {self.by!r}", field="by")

        AgentSettings.__post_init__(self)

    @property
    def title(self) -> str:
        """The name of its agents in the run's log, such as ``archetype lurker``."""
        return f"{self.by} {self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that differ from the run's."""
        return given_settings(self)

    def error(self, problem: str, setting: str | None = None) -> InputError:
        """Return an error that names the file and line that this was read from."""
        path, line = self.place or (None, None)
        name = f"{self.by}.{self.name}" + (f".{setting}" if setting else "")
        return InputError(problem, path=path, line=line, field=name)

    def to_config(self) -> dict[str, Any]:
        """Return the assignment as plain data."""
        return {"by": self.by, "name": self.name, **to_plain(self)}


def assignments_of(given: Any) -> tuple[ModelAssignment, ...]:
    """Return the assignments that a user gives.

    Args:
        given: By selector, such as ``"archetype superuser"``: the settings of the model, or a text
            for `prism.llm.Model.of`.

    Raises:
        InputError: If they are invalid.
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
        known = ", ".join(settings_of(ModelAssignment))
        problem = f"sets for {title!r} what must be the same for all agents: it may set {known}"
        raise InputError(problem, field="assigned") from None
