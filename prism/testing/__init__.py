"""Parts for testing agents and simulations: scripts instead of models, a model server, assertions, coverage.

With pytest most of them are at hand as fixtures: see `prism.pytest_plugin` and ``docs/testing.md``.
What needs the packages of the extra ``testing`` is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prism.errors import MissingExtraError

if TYPE_CHECKING:
    from prism.testing._agents import AgentMaker
    from prism.testing._clock import FrozenClock
    from prism.testing._explore import Exploration, explore
    from prism.testing._paths import assert_path
    from prism.testing._reasoners import FailingReasoner, LateReasoner, RecordingReasoner
    from prism.testing._scripted import ScriptedReasoner, ScriptMaker
    from prism.testing._server.fake_ollama import Asked, FakeOllama
    from prism.testing._server.faults import Fault
    from prism.testing._transition_log import TransitionLog

__all__ = [
    "AgentMaker",
    "Asked",
    "Exploration",
    "FailingReasoner",
    "FakeOllama",
    "Fault",
    "FrozenClock",
    "LateReasoner",
    "RecordingReasoner",
    "ScriptMaker",
    "ScriptedReasoner",
    "TransitionLog",
    "assert_path",
    "explore",
]

_HOMES = {
    "AgentMaker": "_agents",
    "Asked": "_server.fake_ollama",
    "Exploration": "_explore",
    "FailingReasoner": "_reasoners",
    "FakeOllama": "_server.fake_ollama",
    "Fault": "_server.faults",
    "FrozenClock": "_clock",
    "LateReasoner": "_reasoners",
    "RecordingReasoner": "_reasoners",
    "ScriptMaker": "_scripted",
    "ScriptedReasoner": "_scripted",
    "TransitionLog": "_transition_log",
    "assert_path": "_paths",
    "explore": "_explore",
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
