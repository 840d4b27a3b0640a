"""Where the files lie that a plan names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FILES = ("models", "cache", "policy")


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a plan whose files are looked for beside it."""

    def beside(name: str) -> str:
        return str(folder / name)

    def beside_if_file(given: Any) -> Any:
        return beside(given) if isinstance(given, str) and not _is_number(given) else given

    found = {**data}
    for key in ("agents", "posts"):
        if key in found:
            found[key] = beside_if_file(found[key])
    if "agents" in found.get("vary", {}):
        varied = [beside_if_file(each) for each in found["vary"]["agents"]]
        found["vary"] = {**found["vary"], "agents": varied}
    place, colon, name = str(found.get("world", "")).rpartition(":")
    if (place if colon else name).endswith(".py"):
        found["world"] = beside(str(found["world"]))
    if "reasoner" in found:
        files = {key: beside(found["reasoner"][key]) for key in _FILES if key in found["reasoner"]}
        found["reasoner"] = {**found["reasoner"], **files}
    if "arm" in found:
        found["arm"] = [placed(arm, folder) for arm in found["arm"]]

    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
