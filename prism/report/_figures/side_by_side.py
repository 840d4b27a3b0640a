"""One scale for figures of the same kind that stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Spec = dict[str, Any]

_POSITIONS = ("x", "y")
_SIZES = ("size",)


def share_scales(specs: Sequence[Spec], states: Sequence[str]) -> None:
    """Give figures the same axes, sizes and colours, so that they can be compared by eye.

    Figures whose axes mean different things (rounds and ticks, say), axes of real time, and the
    small figures of a facet keep their own.

    Args:
        specs: Figures of one kind as Vega-Lite, one for each run; changed in place.
        states: All states, in the order of their legends and rows.
    """
    if len(specs) < 2:
        return

    for channel in (*_POSITIONS, *_SIZES):
        for alike in _by_title(specs, channel):
            _share_axis(alike, channel, states)

    _share_colours(list(_colours(specs)), states)


def _by_title(specs: Sequence[Spec], channel: str) -> Iterator[list[Spec]]:
    """Yield the figures whose axes have one title, and so one meaning."""
    groups: dict[Any, list[Spec]] = {}
    for spec in specs:
        titles = (encoding.get("title") for encoding in _encodings(spec, channel))
        groups.setdefault(next((title for title in titles if title), None), []).append(spec)

    yield from (group for group in groups.values() if len(group) > 1)


def _share_axis(specs: Sequence[Spec], channel: str, states: Sequence[str]) -> None:
    parts = [(spec, encoding) for spec in specs for encoding in _encodings(spec, channel)]
    kinds = {encoding.get("type") for _, encoding in parts}
    if kinds == {"quantitative"}:
        _share_numbers(parts, channel)
    elif kinds == {"nominal"}:
        _share_names([encoding for _, encoding in parts], states)


def _encodings(spec: Spec, channel: str) -> Iterator[Spec]:
    for part in (spec, *spec.get("layer", ())):
        if "field" in (found := part.get("encoding", {}).get(channel, {})):
            yield found


def _colours(specs: Sequence[Spec]) -> Iterator[Spec]:
    for spec in specs:
        yield from _encodings(spec, "color")


def _share_numbers(parts: Sequence[tuple[Spec, Spec]], channel: str) -> None:
    ends = [end for spec, encoding in parts for end in _ends(spec, encoding, channel)]
    if not ends:
        return

    labels = max((encoding.get("axis", {}).get("values", []) for _, encoding in parts), key=_last)
    for _, encoding in parts:
        encoding["scale"] = {**(encoding.get("scale") or {}), "domain": [min(ends), max(ends)]}
        if labels:
            encoding["axis"] = {**encoding.get("axis", {}), "values": labels}


def _last(labels: Sequence[float]) -> float:
    return labels[-1] if labels else float("-inf")


def _ends(spec: Spec, encoding: Spec, channel: str) -> Iterator[float]:
    """Return the numbers that an axis must reach."""
    scale = encoding.get("scale") or {}
    if "domain" in scale:
        yield from scale["domain"]
        return

    if scale.get("zero"):
        yield 0

    others = (
        other for part in (spec, *spec.get("layer", ())) for other in _other_end(part, channel)
    )
    fields = {encoding["field"], *others}
    rows = (row for rows in spec.get("datasets", {}).values() for row in rows)
    yield from (row[field] for row in rows for field in fields if row.get(field) is not None)


def _other_end(part: Spec, channel: str) -> Iterator[str]:
    if "field" in (found := part.get("encoding", {}).get(f"{channel}2", {})):
        yield found["field"]


def _share_names(encodings: Sequence[Spec], states: Sequence[str]) -> None:
    named = {name for encoding in encodings for name in encoding.get("sort") or ()}
    domain = [state for state in states if state in named]
    for encoding in encodings:
        encoding["scale"] = {**(encoding.get("scale") or {}), "domain": domain}


def _share_colours(encodings: Sequence[Spec], states: Sequence[str]) -> None:
    colours: dict[str, str] = {}
    for encoding in encodings:
        scale = encoding.get("scale", {})
        colours |= dict(zip(scale.get("domain", ()), scale.get("range", ()), strict=True))

    places = {state: place for place, state in enumerate(states)}
    order = sorted(colours, key=lambda name: places.get(name, len(places)))
    for encoding in encodings:
        encoding["sort"] = order
        encoding["scale"] = {"domain": order, "range": [colours[name] for name in order]}
