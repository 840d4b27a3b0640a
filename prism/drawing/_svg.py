"""A diagram as SVG, drawn without any other program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prism.drawing._diagram import Diagram
from prism.drawing._nested_svg import draw_nested
from prism.drawing._picture import Counts, Drawing, Traffic
from prism.errors import DefinitionError


def draw_svg(
    diagram: Diagram,
    traffic: Counts | None = None,
    *,
    beside: Sequence[Counts] = (),
    agents: Mapping[str, int] | None = None,
) -> str:
    """Draw a diagram of states and transitions.

    Decision states have a thick border and a diamond, final states a dot in a circle, and an arrow
    from a dot leads to the initial state. With traffic, an arrow shows how often its transitions
    happened by a number and by its width; one that was never used is faint. Traffic that the
    diagram has no arrow for gets an arrow without triggers.

    Args:
        diagram: What to draw; ``chart.to_svg()`` draws a chart itself.
        traffic: How often an agent went from one state to another, by (source, target).
        beside: The traffic of the same diagram in pictures beside this one. All of them then have
            one layout and one scale of widths.
        agents: The agents in each state, to write below its name; None leaves that out. States and
            arrows then carry ``data-state``, ``data-source`` and ``data-target``, by which a page
            finds them.

    Returns:
        One ``<svg>`` element, ready for a file or for a page.

    Raises:
        DefinitionError: (a ValueError) if the traffic names a state that the diagram does not have,
            or the diagram has boxes, which neither traffic nor agents are drawn with.
    """
    if diagram.boxes:
        if traffic is not None or agents is not None:
            raise DefinitionError(
                f"diagram {diagram.name!r}: traffic and agents are drawn at states without states "
                "inside: leave out boxes"
            )
        return draw_nested(diagram)
    if traffic is None:
        return Drawing(diagram, None, agents).svg()

    return Drawing(diagram, Traffic(diagram, [traffic, *beside]), agents).svg()
