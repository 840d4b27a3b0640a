"""What a world's class declares, as plain data."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from inspect import cleandoc, getdoc
from typing import Any, Literal, get_args, get_origin

from prism.statechart import Statechart
from prism.statechart.states import state_text
from prism.worlds._agent import Agent
from prism.worlds._fields import (
    MISSING,
    Field,
    hints_of,
    parameters_of,
    plain_value,
    words_of_type,
)
from prism.worlds._kinds import chart_name, check_classes, measures_of
from prism.worlds._marks import MEASURE, RATE, STEP, TREATMENT, marked
from prism.worlds._world import World, kinds_of


def about_world(cls: type[World[Any]], address: str) -> dict[str, Any]:
    """Return what `prism world show` prints.

    Args:
        cls: The world's class.
        address: Where it is.

    Raises:
        DefinitionError: If the class cannot work.
    """
    kinds = [each for each in kinds_of(cls) if issubclass(each, Agent)]
    check_classes(cls, kinds)
    parameters = parameters_of(cls)
    hints = hints_of(cls)

    def fields(names: Iterable[str]) -> list[dict[str, Any]]:
        return [_field(name, cls.fields[name], hints.get(name)) for name in names]

    return {
        "world": cls.__name__,
        "address": address,
        "doc": _doc(cls) or getdoc(sys.modules[cls.__module__]) or "",
        **{name: getattr(cls, name) for name in ("rounds", "ticks", "order")},
        **{name: getattr(cls, name) for name in ("together", "independent")},
        "parameters": fields(parameters),
        "state": fields(name for name in cls.fields if name not in parameters),
        "kinds": [_kind(each) for each in kinds_of(cls)],
        "steps": [
            {
                "step": name,
                "states": [*map(state_text, states)],
                "rate": _rate(getattr(getattr(cls, name), RATE)[0]),
                "doc": _summary(getattr(cls, name)),
            }
            for name, states in marked(cls, STEP).items()
        ],
        # without a docstring of its own it would be told in those of the base
        "until": None if cls.until is World.until else _summary(cls.until, own=True),
        "treatments": [
            {"treatment": name, "round": at or None, "doc": _summary(getattr(cls, name))}
            for name, at in marked(cls, TREATMENT).items()
        ],
        "measures": [
            {"measure": name, "doc": _summary(getattr(cls, name))} for name in marked(cls, MEASURE)
        ],
    }


def _rate(rate: Any) -> str | None:
    """Return the rate of a step in words; None for a step that is taken in turns."""
    return getattr(rate, "__name__", None) or (None if rate is None else str(rate))


def _field(name: str, field: Field, hint: Any) -> dict[str, Any]:
    """Describe a field: its type and bounds, and where its value comes from if none is given."""
    about: dict[str, Any] = {
        "name": name,
        "type": words_of_type(hint),
        "required": field.is_required,
        "help": field.help,
    }
    bounds = {"least": field.least, "most": field.most, "options": _options(hint) or None}
    about |= {key: bound for key, bound in bounds.items() if bound is not None}
    if field.default is not MISSING:
        default = plain_value(field.default)
        is_plain = isinstance(default, (str, int, float, bool, list, dict, type(None)))
        about["default"] = default if is_plain else repr(default)
    elif field.drawn:
        about["drawn"] = field.drawn
    return about


def _options(hint: Any) -> list[Any]:
    """Return the values that a type allows, if it names them."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [plain_value(each) for each in hint]
    return [*get_args(hint)] if get_origin(hint) is Literal else []


def _kind(kind: type[Agent]) -> dict[str, Any]:
    chart = getattr(kind, "chart", None)
    # an object of another class, which a guest represents, declares no fields
    fields: Mapping[str, Field] = getattr(kind, "fields", {})
    hints = hints_of(kind)
    own = {name: field for name, field in fields.items() if name not in Agent.fields}
    return {
        "kind": kind.__name__,
        "doc": _doc(kind),
        "chart": _chart(chart, chart_name(kind)) if isinstance(chart, Statechart) else None,
        "fields": [_field(name, field, hints.get(name)) for name, field in own.items()],
        "measures": [*measures_of(kind)],
    }


def _chart(chart: Statechart[Any], name: str) -> dict[str, Any]:
    definition = chart.definition
    return {
        "name": name,
        "states": [*map(state_text, definition.states)],
        "initial": state_text(definition.initial),
        "decision_states": [*map(state_text, definition.decision_states)],
        "transitions": [
            {
                "trigger": each.trigger,
                "source": state_text(each.source),
                "target": state_text(each.target),
            }
            for each in definition.transitions
        ],
    }


def _doc(cls: type) -> str:
    """Return the docstring of the class itself, not one that it inherits."""
    return cleandoc(vars(cls).get("__doc__") or "")


def _summary(method: Any, *, own: bool = False) -> str:
    return ((method.__doc__ if own else getdoc(method)) or "").partition("\n")[0]
