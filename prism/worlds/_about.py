"""What a world's class declares, as plain data."""

from __future__ import annotations

import sys
from collections.abc import Iterable
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
from prism.worlds._kinds import chart_name, check_classes
from prism.worlds._marks import MEASURE, STEP, TREATMENT, marked
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
    others = [name for name in cls.fields if name not in parameters]
    return {
        "world": cls.__name__,
        "address": address,
        "doc": _doc(cls) or getdoc(sys.modules[cls.__module__]) or "",
        "rounds": cls.rounds,
        "ticks": cls.ticks,
        "parameters": _fields(cls, parameters),
        "state": _fields(cls, others),
        "kinds": [_kind(each) for each in kinds_of(cls)],
        "steps": [
            {"step": name, "states": [*map(state_text, states)], "doc": _summary(cls, name)}
            for name, states in marked(cls, STEP).items()
        ],
        "treatments": [
            {"treatment": name, "round": at or None, "doc": _summary(cls, name)}
            for name, at in marked(cls, TREATMENT).items()
        ],
        "measures": [
            {"measure": name, "doc": _summary(cls, name)} for name in marked(cls, MEASURE)
        ],
    }


def _summary(cls: type, name: str) -> str:
    """Return the first line of a method's docstring."""
    return (getdoc(getattr(cls, name)) or "").partition("\n")[0]


def _fields(cls: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    hints = hints_of(cls)
    return [_field(name, cls.fields[name], hints.get(name)) for name in names]


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
    fields = getattr(kind, "fields", {})
    return {
        "kind": kind.__name__,
        "doc": _doc(kind),
        "chart": _chart(chart, chart_name(kind)) if isinstance(chart, Statechart) else None,
        "fields": _fields(kind, [name for name in fields if name not in Agent.fields]),
    }


def _chart(chart: Statechart[Any], name: str) -> dict[str, Any]:
    transitions = [
        {
            "trigger": each.trigger,
            "source": state_text(each.source),
            "target": state_text(each.target),
        }
        for each in chart.definition.transitions
    ]
    return {
        "name": name,
        "states": [*map(state_text, chart.definition.states)],
        "transitions": transitions,
    }


def _doc(cls: type) -> str:
    """Return the docstring of the class itself, not one that it inherits."""
    return cleandoc(vars(cls).get("__doc__") or "")
