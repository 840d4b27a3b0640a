"""What a world's class declares, as plain data."""

from __future__ import annotations

import sys
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
from prism.worlds._kinds import check_classes
from prism.worlds._marks import MEASURE, TREATMENT, marked
from prism.worlds._world import World, kinds_of


def about_world(cls: type[World[Any]], address: str) -> dict[str, Any]:
    """Return what `prism world show` prints.

    Args:
        cls: The world's class.
        address: Where it is.

    Raises:
        DefinitionError: If the class cannot work.
    """
    check_classes(cls, [each for each in kinds_of(cls) if issubclass(each, Agent)])
    hints = hints_of(cls)
    return {
        "world": cls.__name__,
        "address": address,
        "doc": _doc(cls) or getdoc(sys.modules[cls.__module__]) or "",
        "rounds": cls.rounds,
        "ticks": cls.ticks,
        "parameters": [
            _field(name, field, hints.get(name)) for name, field in parameters_of(cls).items()
        ],
        "kinds": [
            {"kind": each.__name__, "states": _states(each), "doc": _doc(each)}
            for each in kinds_of(cls)
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


def _field(name: str, field: Field, hint: Any) -> dict[str, Any]:
    """Describe a parameter: its type, bounds and default."""
    bounds = {"least": field.least, "most": field.most, "options": _options(hint) or None}
    default = {} if field.default is MISSING else {"default": plain_value(field.default)}
    return {
        "name": name,
        "type": words_of_type(hint),
        **default,
        **{key: bound for key, bound in bounds.items() if bound is not None},
        "help": field.help,
    }


def _options(hint: Any) -> list[Any]:
    """Return the values that a type allows, if it names them."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [plain_value(each) for each in hint]
    return [*get_args(hint)] if get_origin(hint) is Literal else []


def _states(kind: type) -> str:
    # a workflow or a thinking agent has its chart itself
    chart = getattr(kind, "chart", None)
    states = chart.definition.states if isinstance(chart, Statechart) else ()
    return ", ".join(map(state_text, states))


def _doc(cls: type) -> str:
    """Return the docstring of the class itself, not one that it inherits."""
    return cleandoc(vars(cls).get("__doc__") or "")
