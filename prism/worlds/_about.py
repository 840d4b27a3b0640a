"""What a world's class declares, as plain data."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from inspect import cleandoc, getdoc
from typing import Any

from prism.statechart import Statechart
from prism.statechart.states import state_text
from prism.worlds._agent import Agent
from prism.worlds._fields import MISSING, Field, hints_of, options_of, shown_value, words_of_type
from prism.worlds._kinds import chart_name, measures_of, parts_of
from prism.worlds._parameters import Parameter, parameters_of
from prism.worlds._world import RATE, World, kinds_of


def about_world(cls: type[World[Any]], address: str) -> dict[str, Any]:
    """Return what `prism world show` prints.

    Args:
        cls: The world's class.
        address: Where it is.

    Raises:
        DefinitionError: If the class cannot work.
    """
    parts = parts_of(cls)
    hints = hints_of(cls)
    parameters = parameters_of(cls)

    return {
        "world": cls.__name__,
        "address": address,
        "doc": _doc(cls) or getdoc(sys.modules[cls.__module__]) or "",
        "rounds": cls.rounds,
        "ticks": cls.ticks,
        "order": cls.order,
        "activation": cls.activation,
        "together": cls.together,
        "parameters": list(map(_parameter, parameters.values())),
        "state": [
            _field(each, hints.get(name))
            for name, each in cls.fields.items()
            if name not in parameters
        ],
        "kinds": list(map(_kind, kinds_of(cls))),
        "steps": [
            {
                "step": name,
                "states": [state_text(each) for each in states],
                "rate": _rate(getattr(method, RATE)),
                "doc": _summary(method),
            }
            for name, method, states in parts.steps
        ],
        "until": _until(cls),
        "treatments": [
            {"treatment": name, "round": at or None, "doc": _summary(getattr(cls, name))}
            for name, at in parts.treatments.items()
        ],
        "measures": [
            {"measure": name, "doc": _summary(getattr(cls, name))} for name in parts.measures
        ],
    }


def _until(cls: type[World[Any]]) -> str | None:
    """Return when runs end early, in the world's own words; None if they do not."""
    own = cls.until
    if own is World.until:
        return None
    # without a docstring of its own it would be told in those of the base
    return _summary(own) if own.__doc__ else ""


def _rate(rate: Any) -> str | None:
    """Return the rate of a step in words; None for a step that is taken in turns."""
    return getattr(rate, "__name__", None) or (None if rate is None else str(rate))


def _parameter(parameter: Parameter) -> dict[str, Any]:
    field, hint = parameter.field, parameter.hint
    declared = field.declared
    bounds = {"least": declared.least, "most": declared.most, "options": options_of(hint) or None}

    return {
        **_field(field, hint),
        "required": declared.is_required,
        **{name: bound for name, bound in bounds.items() if bound is not None},
        "help": declared.help,
    }


def _field(field: Field, hint: Any) -> dict[str, Any]:
    """Describe a field: its type, and where its value comes from if none is given."""
    declared = field.declared
    found: dict[str, Any] = {
        "name": field.name,
        "type": words_of_type(hint, field.annotation),
    }
    if declared.default is not MISSING:
        default = shown_value(declared.default)
        is_plain = isinstance(default, (str, int, float, bool, list, dict, type(None)))
        found["default"] = default if is_plain else repr(default)
    elif declared.drawn:
        found["drawn"] = declared.drawn
    elif declared.make is not None:
        made = declared.make
        found["made"] = getattr(made, "__name__", "").replace("<lambda>", "") or "a function"

    return found


def _kind(kind: type[Agent]) -> dict[str, Any]:
    chart = getattr(kind, "chart", None)
    # an object of another class, which a guest represents, declares no fields
    fields: Mapping[str, Field] = getattr(kind, "fields", {})
    hints = hints_of(kind)

    return {
        "kind": kind.__name__,
        "doc": _doc(kind),
        "chart": _chart(chart, chart_name(kind)) if isinstance(chart, Statechart) else None,
        "fields": [
            _field(field, hints.get(name))
            for name, field in fields.items()
            if name not in Agent.fields
        ],
        "measures": [*measures_of(kind)],
    }


def _chart(chart: Statechart[Any], name: str) -> dict[str, Any]:
    definition = chart.definition
    return {
        "name": name,
        "states": _texts(definition.states),
        "initial": state_text(definition.initial),
        "decision_states": _texts(definition.decision_states),
        "transitions": [
            {
                "trigger": each.trigger,
                "source": state_text(each.source),
                "target": state_text(each.target),
            }
            for each in definition.transitions
        ],
    }


def _texts(states: Iterable[Any]) -> list[str]:
    return [state_text(state) for state in states]


def _doc(cls: type) -> str:
    """Return the docstring of the class itself, not one that it inherits."""
    return cleandoc(vars(cls).get("__doc__") or "")


def _summary(method: Any) -> str:
    return (getdoc(method) or "").partition("\n")[0]


def signature_of(parameter: Mapping[str, Any]) -> str:
    """Return a parameter as one line: ``friends: int = 6, at least 2``."""
    text = f"{parameter['name']}: {parameter['type']}"
    if "default" in parameter:
        text += f" = {parameter['default']}"
    for key, words in (("least", "at least"), ("most", "at most")):
        if key in parameter:
            text += f", {words} {parameter[key]}"

    return text + (", required" if parameter.get("required") else "")
