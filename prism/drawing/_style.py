"""The style sheet of a drawn diagram: colours for light and for dark surroundings."""

from __future__ import annotations

from collections.abc import Mapping

_LIGHT = {
    "ink": "#1f2328",
    "paper": "#ffffff",
    "box": "#f0f3f6",
    "line": "#6e7781",
    "accent": "#8250df",
}
_DARK = {
    "ink": "#e6edf3",
    "paper": "#0d1117",
    "box": "#1c232c",
    "line": "#8b949e",
    "accent": "#b58cff",
}

_STYLE = """
.prism-chart text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: INK; }
.prism-chart .paper { fill: PAPER; }
.prism-chart .box { fill: BOX; stroke: LINE; stroke-width: 1.3; }
.prism-chart .decision { stroke: ACCENT; stroke-width: 2.4; }
.prism-chart .mark { fill: ACCENT; }
.prism-chart .ring { fill: none; stroke: ACCENT; }
.prism-chart .rest { stroke-dasharray: 4 3; fill: none; }
.prism-chart .line { fill: none; stroke: LINE; }
.prism-chart .head, .prism-chart .start { fill: LINE; }
.prism-chart .idle { opacity: 0.45; stroke-dasharray: 3 3; }
.prism-chart .small { font-size: 11px; }
.prism-chart .name { font-size: 13px; font-weight: 600; }
.prism-chart .count { font-size: 11px; font-weight: 700; }
"""


def style_sheet() -> str:
    """Return the style sheet, with plain colours first for programs without CSS variables."""
    return (
        f"{_with_colours(_LIGHT)}"
        f"@supports (fill: var(--chart-ink)) {{\n{_colour_rules(_LIGHT)}\n}}\n"
        f"@media (prefers-color-scheme: dark) {{\n{_colour_rules(_DARK)}\n}}\n"
    )


def _with_colours(colours: Mapping[str, str]) -> str:
    style = _STYLE
    for name, colour in colours.items():
        style = style.replace(f" {name.upper()};", f" {colour};")

    return style


def _colour_rules(colours: Mapping[str, str]) -> str:
    """Return the rules that set a colour, each as a variable with its default."""
    variables = {name: f"var(--chart-{name}, {colour})" for name, colour in colours.items()}
    rules = _with_colours(variables).splitlines()
    return "\n".join(rule for rule in rules if "var(" in rule or "none" in rule)
