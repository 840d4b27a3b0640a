"""Plans that ship with prism, by their names."""

from __future__ import annotations

from pathlib import Path

from prism.errors import InputError

_PLANS = Path(__file__).with_name("plans")


def shipped_plans() -> list[str]:
    """Return the names of the plans that ship."""
    return sorted(path.stem for path in _PLANS.glob("*.toml"))


def plan_path(given: Path | str) -> Path:
    """Return the path of a plan: the file that is given, or the one that ships by that name.

    Raises:
        InputError: If there is neither.
    """
    path = Path(given)
    if not path.exists() and str(given) in shipped_plans():
        return _PLANS / f"{given}.toml"
    if not path.exists() and not path.suffix:
        problem = f"there is no such file, and plans that ship are {', '.join(shipped_plans())}"
        raise InputError(problem, path=path)

    return path
