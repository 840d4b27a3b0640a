"""The colours of figures, and what becomes of them where a reader prefers dark pages."""

from __future__ import annotations

from collections.abc import Iterable

INK, PAPER, GRID, AXIS = "#1f2328", "white", "#e8ebee", "#888888"
BLUE, GREY = "#332288", "#8a93a0"

# Paul Tol's scheme "muted", which colour-blind readers can tell apart (SRON/EPS/TN/09-002, 2021).
_MUTED = (
    "#bbbbbb",
    "#88ccee",
    "#332288",
    "#ddcc77",
    "#cc6677",
    "#117733",
    "#aa4499",
    "#44aa99",
    "#882255",
    "#999933",
)

DARK_PAPER = "#0d1117"
_DARK = {INK: "#e6edf3", PAPER: DARK_PAPER, GRID: "#2b323b", AXIS: "#8b949e"}

# So much white lifts the darkest colour of a state to a contrast of 3:1 with dark paper (WCAG 2.2,
# 1.4.11). All colours are lifted alike: else two shades of one colour could become the same.
_WHITE = 0.3


def colour_of(place: int) -> str:
    """Return the colour of a state: after ten they come again, darker, then lighter.

    Args:
        place: The place of the state among all states.
    """
    colour, turn = _MUTED[place % len(_MUTED)], place // len(_MUTED) % 3
    return _mixed(colour, *((0, 0.0), (0, 0.35), (255, 0.5))[turn])


def in_dark(colour: str) -> str:
    """Return what a colour becomes on a dark page.

    Args:
        colour: ``#rrggbb``, or one of those above.
    """
    return _DARK.get(colour) or _mixed(colour, 255, _WHITE)


def dark_rules(colours: Iterable[str]) -> str:
    """Return the style sheet that draws figures in dark colours.

    Figures have their colours as attributes, which any rule of a style sheet overrides. So nothing
    is drawn again when the preference changes, and what is saved or printed keeps its colours.

    Args:
        colours: The colours that figures use.
    """
    return "\n".join(
        f'.picture [{name}="{colour}"] {{ {name}: {in_dark(colour)}; }}'
        for colour in dict.fromkeys((*_DARK, *colours))
        for name in ("fill", "stroke")
    )


def _mixed(colour: str, towards: int, part: float) -> str:
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(value + (towards - value) * part):02x}" for value in parts)
