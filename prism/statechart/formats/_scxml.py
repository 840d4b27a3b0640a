"""A chart as SCXML (W3C, State Chart XML, https://www.w3.org/TR/scxml/)."""

from __future__ import annotations

import re
from typing import Any
from xml.sax.saxutils import escape

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._identity import own_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Guard, Transition

NAMESPACE = "http://www.w3.org/2005/07/scxml"
PRISM_NAMESPACE = "urn:prism:statechart"

_NO_DOCUMENT = "a chart with composites, timers or chance cannot be written as SCXML yet"

_ESCAPED = re.compile(r"[^A-Za-z0-9_]|^[0-9]|_(?=x[0-9A-F])")
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_THE_PLATFORM = re.compile(r"\A(?:error|done)\Z")
"""Event descriptors that would match the interpreter's own events (SCXML, section 5.10.2)."""


def scxml_name(text: str) -> str:
    """Return the name that a state or trigger has in the SCXML document.

    Letters and digits of ASCII and the underscore stay; any other character becomes ``_x`` with its
    code point in four to six hexadecimal digits and ``_``, as in .NET's ``XmlConvert.EncodeName``:
    ``round ends`` becomes ``round_x0020_ends``. So do a digit at the beginning and an underscore
    that would be read as the beginning of such a code. The names are different for different texts,
    are NCNames, and hold no ``.``, blank or ``*``, which mean something in an event descriptor.

    Args:
        text: Text of a state, or a trigger.
    """
    escaped = _ESCAPED.sub(_code, text)
    return _OF_THE_PLATFORM.sub(lambda found: _code(found) + found[0][1:], escaped)


def scxml_guards(chart: Definition[Any]) -> dict[str, Guard]:
    """Return the guards of a chart by the fields of event data in which SCXML expects outcomes.

    The program that runs the document evaluates the guards and sends their outcomes with each
    event. A field is ``guard_`` and the `scxml_name` of the function's name, or ``guard``; a number
    follows if the name is taken.

    Args:
        chart: The chart's definition, ``chart.definition``.
    """
    fields: dict[str, Guard] = {}
    for item in chart.transitions:
        if item.guard is not None and item.guard not in fields.values():
            stem = "guard_" + scxml_name(own_name(item.guard) or "guard")
            number = 1
            while (name := stem if number == 1 else f"{stem}_{number}") in fields:
                number += 1

            fields[name] = item.guard

    return fields


def _code(found: re.Match[str]) -> str:
    return f"_x{ord(found[0][0]):04X}_"


def to_scxml(chart: Definition[Any]) -> str:
    """Write an SCXML document that makes the same transitions as the chart.

    States and triggers are named by `scxml_name`. A guard reads its outcome from the event's data,
    as ``cond="_event.data.guard_is_busy"``: see `scxml_guards`. Actions, decision states, limits
    and the description stand in attributes of prism's own namespace, which interpreters ignore. An
    interpreter stops in a final state.

    Args:
        chart: The chart's definition.
    """
    if chart.tree is not None:
        raise DefinitionError(f"chart {chart.name!r}: {_NO_DOCUMENT}")

    fields = scxml_guards(chart)
    leaving: dict[Any, list[str]] = {state: [] for state in chart.states}
    for item in chart.transitions:
        leaving[item.source].append(_transition(item, fields))

    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<scxml xmlns="{NAMESPACE}" xmlns:prism="{PRISM_NAMESPACE}" '
        f'version="1.0" datamodel="ecmascript" '
        f'name="{scxml_name(chart.name or "statechart")}" initial="{_id(chart.initial)}"'
        f"{_description(chart)}>",
    ]
    for state, transitions in leaving.items():
        if state in chart.final_states:
            lines.append(f'  <final id="{_id(state)}"/>')
            continue

        lines += [f'  <state id="{_id(state)}"{_extras(chart, state)}>', *transitions, "  </state>"]

    return "\n".join([*lines, "</scxml>"]) + "\n"


def _id(state: Any) -> str:
    return scxml_name(state_text(state))


def _description(chart: Definition[Any]) -> str:
    if not chart.description:
        return ""

    # what XML has no room for, not even escaped (XML 1.0, section 2.2)
    text = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", chart.description)
    # line ends and tabs in an attribute would be read as spaces
    signs = {sign: f"&#{ord(sign)};" for sign in '\t\n\r"'}
    return f' prism:description="{escape(text, signs)}"'


def _extras(chart: Definition[Any], state: Any) -> str:
    decision = ' prism:decision="true"' if state in chart.decision_states else ""
    return decision + (
        f' prism:timeout="{chart.timeouts[state]}"' if state in chart.timeouts else ""
    )


def _transition(item: Transition[Any], fields: dict[str, Guard]) -> str:
    attributes = [f'event="{scxml_name(item.trigger)}"', f'target="{_id(item.target)}"']
    if item.guard is not None:
        field = next(name for name, guard in fields.items() if guard == item.guard)
        attributes.insert(1, f'cond="_event.data.{field}"')

    if item.action is not None:
        attributes.append(f'prism:action="{scxml_name(own_name(item.action) or "action")}"')

    return f"    <transition {' '.join(attributes)}/>"
