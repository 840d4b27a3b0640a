"""Names in the SCXML documents that prism writes, and how these begin."""

from __future__ import annotations

import re
from typing import Any

from prism.statechart._definition import Definition
from prism.statechart._nesting import In
from prism.statechart.formats._names import Functions, name_of
from prism.statechart.transitions import Guard

NAMESPACE = "http://www.w3.org/2005/07/scxml"
PRISM_NAMESPACE = "urn:prism:statechart"

_ESCAPED = re.compile(r"[^A-Za-z0-9_]|^[0-9]|_(?=x[0-9A-F])")
_CODE = re.compile(r"_x([0-9A-F]{4,5}|10[0-9A-F]{4})_")
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


def scxml_text(name: str) -> str:
    """Return the text whose `scxml_name` a name is."""
    return _CODE.sub(lambda found: chr(int(found[1], 16)), name)


def scxml_guards(chart: Definition[Any], guards: Functions | None = None) -> dict[str, Guard]:
    """Return the guards of a chart by the fields of event data in which SCXML expects outcomes.

    The program that runs the document evaluates the guards and sends their outcomes with each
    event. A field is ``guard_`` and the `scxml_name` of the function's name, or ``guard``; a number
    follows if the name is taken.

    Args:
        chart: The chart's definition, ``chart.definition``.
        guards: Guards by name, for those without a name of their own.
    """
    fields: dict[str, Guard] = {}
    for item in chart.written:
        if item.guard is None or isinstance(item.guard, In):
            continue
        if item.guard not in fields.values():
            stem = "guard_" + scxml_name(name_of(item.guard, guards) or "guard")
            number = 1
            while (name := stem if number == 1 else f"{stem}_{number}") in fields:
                number += 1

            fields[name] = item.guard

    return fields


def _code(found: re.Match[str]) -> str:
    return f"_x{ord(found[0][0]):04X}_"
