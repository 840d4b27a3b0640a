"""A chart as SCXML (W3C, State Chart XML, https://www.w3.org/TR/scxml/).

What SCXML has is written as SCXML: regions, histories, internal transitions and ``In``. What it has
not stands in prism's namespace, which interpreters ignore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, indent, tostring

from prism.statechart._definition import DEFAULT_NAME, Definition
from prism.statechart._nesting import DONE
from prism.statechart._tree.numbers import Arc
from prism.statechart.formats._document import data_of
from prism.statechart.formats._names import Functions, name_of
from prism.statechart.formats._scxml_names import (
    NAMESPACE,
    PRISM_NAMESPACE,
    scxml_guards,
    scxml_name,
)
from prism.statechart.transitions import TIMING, is_any_state

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML has no room for, not even escaped (XML 1.0, section 2.2)."""


def to_scxml(
    chart: Definition[Any], guards: Functions | None = None, actions: Functions | None = None
) -> str:
    """Write an SCXML document that makes the same transitions as the chart.

    States and triggers are named by `scxml_name`. A guard reads its outcome from the event's data,
    as ``cond="_event.data.guard_is_busy"``: see `scxml_guards`. An interpreter stops in a final
    state.

    Args:
        chart: The chart's definition.
        guards: Guards by name, for those without a name of their own.
        actions: Actions by name.
    """
    root = _Writer(chart, guards, actions).root()
    indent(root)
    text = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


class _Writer:
    """Writes one chart."""

    def __init__(
        self, chart: Definition[Any], guards: Functions | None, actions: Functions | None
    ) -> None:
        fields = scxml_guards(chart, guards)
        self._hierarchy = chart.hierarchy
        self._data = data_of(
            chart,
            lambda guard, _: next(name for name, known in fields.items() if known == guard),
            lambda action, _: scxml_name(name_of(action, actions) or "action"),
            lambda timing, _: scxml_name(name_of(timing, guards) or "function"),
        )
        for key in ("final_states", "decision_states"):
            self._data[key] = frozenset(self._data[key])
        self._histories: dict[str, dict[str, str]] = {}
        self._leaving: dict[str, list[Element]] = {}

    def root(self) -> Element:
        """Return the document."""
        data = self._data
        for arc in self._hierarchy.arcs:
            source = self._hierarchy.tree.texts[arc.source]
            move = self._transition(data["transitions"][arc.place], arc)
            if source not in data["final_states"]:
                self._leaving.setdefault(source, []).append(move)

        root = _element(
            "scxml",
            **{"xmlns": NAMESPACE, "xmlns:prism": PRISM_NAMESPACE, "version": "1.0"},
            **{"datamodel": "ecmascript", "name": scxml_name(data["name"] or DEFAULT_NAME)},
            initial=self._places(data["initial"]),
            strict=data["strict"],
            needs=" ".join(data["needs"]),
            description=data.get("description"),
        )
        root.extend([self._state(each) for each in data["states"]])
        # only now are all histories known
        for state in [*root.iter()]:
            for place, name in self._histories.pop(state.get("id", ""), {}).items():
                state.insert(0, self._history(json.loads(place), name))
        return root

    def _state(self, data: Any) -> Element:
        data = data if isinstance(data, dict) else {"state": data}
        text, chart = data["state"], self._data
        tag = "parallel" if data.get("parallel") else "state"
        names = {key: " ".join(_listed(data.get(key))) for key in ("entry", "exit")}
        state = _element(
            "final" if text in chart["final_states"] else tag,
            id=scxml_name(text),
            initial=self._places(data.get("initial")),
            **names,
            decision=text in chart["decision_states"],
            timeout=chart["timeouts"].get(text),
        )
        state.extend(self._leaving.get(text, ()))
        state.extend([self._state(each) for each in data.get("states", ())])
        return state

    def _transition(self, data: Mapping[str, Any], arc: Arc) -> Element:
        guard, trigger = data.get("guard"), data["trigger"]
        is_exact = trigger is not None and "descriptor" not in data
        if is_exact:
            prefix = DONE if trigger.startswith(DONE) else ""
            trigger = prefix + scxml_name(trigger.removeprefix(prefix))
        if guard is not None:
            active = isinstance(guard, dict) and f"In('{scxml_name(guard['in'])}')"
            guard = active or f"_event.data.{guard}"
        return _element(
            "transition",
            event=trigger,
            cond=guard,
            target=self._places(data["target"]),
            type="internal" if data.get("internal") else None,
            exact=is_exact,
            source="*" if is_any_state(arc.written.source) else None,
            place=arc.place,
            **{key: data.get(key) for key in ("action", *TIMING)},
        )

    def _places(self, places: Any) -> str:
        """Return the ids of states and histories."""
        ids = []
        for each in _listed(places):
            if isinstance(each, str):
                ids.append(scxml_name(each))
                continue
            state = scxml_name(each["history"])
            known = self._histories.setdefault(state, {})
            ids.append(known.setdefault(json.dumps(each), f"{state}.history.{len(known) + 1}"))
        return " ".join(ids)

    def _history(self, data: Mapping[str, Any], name: str) -> Element:
        tree = self._hierarchy.tree
        node = tree.nodes[tree.numbers[data["history"]]]
        # SCXML's histories have a default always
        numbers = node.children if node.kind == "parallel" else node.children[:1]
        default = data.get("default", [tree.texts[number] for number in numbers])
        kind = "deep" if data["deep"] else "shallow"
        history = _element("history", id=name, type=kind, implicit="default" not in data)
        history.append(_element("transition", target=self._places(default)))
        return history


_OWN = {
    *("strict", "needs", "description", "entry", "exit", "decision", "timeout", "implicit"),
    *("source", "place", "exact", "action", *TIMING),
}


def _element(tag: str, **attributes: Any) -> Element:
    """Return an element with those attributes that say something, prism's own in its namespace."""
    element = Element(tag)
    for key, value in attributes.items():
        if value is not None and value is not False and value != "":
            text = "true" if value is True else str(value)
            name = f"prism:{key}" if key in _OWN else key
            element.set(name, _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))
    return element


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]
