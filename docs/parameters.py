"""The tables of the feed's parameters and presets, from the code."""

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

from prism.social import PRESETS
from prism.social.parameters import Parameters

_ARGUMENT = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.DOTALL | re.MULTILINE)


def written(page: str) -> str:
    """Return a page with its tables filled in."""
    for name, table in (("parameters", parameters_table()), ("presets", presets_table())):
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page = marked.sub(lambda found, table=table: found[1] + table + found[2], page)

    return page


def parameters_table() -> str:
    """Return each parameter with default, range and meaning."""
    meanings, hints = _meanings(Parameters), get_type_hints(Parameters)
    lines = ["| parameter | default | range | meaning |", "|---|---|---|---|"]
    for name, each in Parameters.fields.items():
        row = (f"`{name}`", _shown(each.default), _range(each, hints[name]), meanings[name])
        lines.append(f"| {' | '.join(row)} |")

    return "\n".join(lines) + "\n"


def presets_table() -> str:
    """Return what each preset changes, and what it says of itself."""
    lines = ["| preset | calibration | what it changes |", "|---|---|---|"]
    for preset_name, preset in PRESETS.items():
        changed = ", ".join(f"`{name}={_shown(value)}`" for name, value in preset.values.items())
        about = " ".join(preset.about.split())
        lines.append(f"| `{preset_name}` | {about} | {changed or 'nothing'} |")

    return "\n".join(lines) + "\n"


def _meanings(cls: type) -> dict[str, str]:
    """Return what a docstring says of each argument, as one line each."""
    _, _, after = (cls.__doc__ or "").partition("Args:\n")
    arguments = re.split(r"\n\s*\n", after, maxsplit=1)[0]
    body = re.sub(r"^        ", "    ", arguments, flags=re.MULTILINE)

    return {
        name: " ".join(text.split()).replace("``", "`").replace("|", "\\|")
        for name, text in _ARGUMENT.findall(body)
    }


def _range(field: Any, hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    if isinstance(field.default, bool):
        return "true, false"

    if isinstance(field.default, tuple):
        return f"{len(field.default)} numbers"

    least, most = field.least, field.most
    nothing = ", or none" if field.default is None else ""
    if least is not None and most is not None:
        return f"{_shown(least)} to {_shown(most)}{nothing}"
    if least is not None:
        return f"from {_shown(least)}{nothing}"

    if hint is Any:
        return "posts, or a file"
    return "any text" if isinstance(field.default, str) else "any number"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if value == "":
        return "(empty)"

    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))

    return f"{value:g}" if isinstance(value, float) else str(value)
