"""The tables of events, from the docstrings beside their names."""

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from prism.telemetry import events

Keys = dict[str, tuple[str, str]]
"""Type and meaning of each key."""

_KEYS = re.compile(r"^    (\w+(?:, \w+)*)(?: \((.*?)\))?(?:: (.*?))?$(?=\n    \w|\Z)", re.M | re.S)


def described() -> Iterator[tuple[str, str, Keys]]:
    """Yield constant, meaning and keys of each event; first, without a name, those of all lines."""
    body = ast.parse(Path(events.__file__).read_text(encoding="utf-8")).body
    explained: Keys = {}
    for before, node in zip([None, *body], body, strict=False):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        text, _, listed = cleandoc(node.value.value).partition("\n\nAttributes:\n")
        keys: Keys = {}
        for names, kind, meaning in _KEYS.findall(listed):
            for key in names.split(", "):
                old = explained.get(key, ("", ""))
                keys[key] = kind or old[0], " ".join(meaning.split()) or old[1]
        explained |= keys
        constant = before.targets[0].id if isinstance(before, ast.Assign) else ""
        if constant != "SCHEMA_VERSION":
            yield constant, text, keys


def tables() -> str:
    """Return the keys of every line, and a section for each event."""
    (_, _, of_all), *sections = described()
    text = f"\n## Every line\n{table(of_all)}\n"
    for constant, meaning, keys in sections:
        text += f"\n## `{getattr(events, constant)}`\n\n{meaning}\n{table(keys) if keys else ''}\n"
        text += f"\nConstant: `{constant}`.\n"
    return text


def table(keys: Keys) -> str:
    """Return the table of some keys."""
    rows = (f"| `{key}` | {kind} | {meaning} |" for key, (kind, meaning) in keys.items())
    return "\n".join(["", "| key | value | meaning |", "|---|---|---|", *rows])
