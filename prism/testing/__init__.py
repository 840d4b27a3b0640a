"""Parts for testing agents and simulations: scripts instead of models, a model server, assertions, coverage.

With pytest most of them are at hand as fixtures: see `prism.pytest_plugin` and ``docs/testing.md``. What needs the
packages of the extra ``testing`` is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prism.errors import MissingExtraError

if TYPE_CHECKING:
    from prism.testing.agents import AgentMaker
    from prism.testing.clock import FrozenClock
    from prism.testing.exploring import Exploration, explore
    from prism.testing.fake_ollama import Asked, FakeOllama
    from prism.testing.faults import Fault
    from prism.testing.paths import assert_path
    from prism.testing.scripted import ScriptedReasoner, ScriptMaker
    from prism.testing.transition_log import TransitionLog

__all__ = [
    "AgentMaker",
    "Asked",
    "Exploration",
    "FakeOllama",
    "Fault",
    "FrozenClock",
    "ScriptMaker",
    "ScriptedReasoner",
    "TransitionLog",
    "assert_path",
    "explore",
]

_HOMES = {
    "AgentMaker": "agents",
    "Asked": "fake_ollama",
    "Exploration": "exploring",
    "FakeOllama": "fake_ollama",
    "Fault": "faults",
    "FrozenClock": "clock",
    "ScriptMaker": "scripted",
    "ScriptedReasoner": "scripted",
    "TransitionLog": "transition_log",
    "assert_path": "paths",
    "explore": "exploring",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name when it is first asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("testing", str(error.name)) from error
        globals()[name] = value
        return value
