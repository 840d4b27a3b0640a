"""Plans that ship with prism, by their names."""

from __future__ import annotations

from pathlib import Path

_PLANS = Path(__file__).with_name("plans")


def shipped_plans() -> list[str]:
    """Return the names of the plans that ship."""
    return sorted(path.stem for path in _PLANS.glob("*.toml"))


def plan_path(given: Path | str) -> Path:
    """Return the path of a plan: the file that is given, or the one that ships by that name."""
    path = Path(given)
    if path.exists() or str(given) not in shipped_plans():
        return path

    return _PLANS / f"{given}.toml"
