"""How well colours can be told apart."""

import re


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, ``#rrggbb`` or ``rgb(r, g, b)`` (WCAG 2.2)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    if colour.startswith("#"):
        parts = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
    else:
        parts = [int(part) for part in re.findall(r"[0-9]+", colour)[:3]]

    linear = [_linear(part / 255) for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)
