"""Parts for testing agents: reasoners, writers, a model server, assertions, coverage.

With pytest most of them are at hand as fixtures: see `prism.pytest_plugin` and ``docs/testing.md``.
`FakeOllama`, `FakeOpenAI` and `explore` need the extra: ``pip install '.[testing]'``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prism.errors import MissingExtraError
from prism.testing._paths import assert_path
from prism.testing._reasoners import (
    FailingReasoner,
    LateReasoner,
    RecordingReasoner,
    ScriptedReasoner,
    ScriptMaker,
)
from prism.testing._stand_ins import AgentMaker, FrozenClock, TransitionLog
from prism.testing._writers import ScriptedWriter, WriterMaker

if TYPE_CHECKING:
    from prism.testing._explore import Exploration, explore
    from prism.testing._server.fake_ollama import FakeOllama
    from prism.testing._server.fake_openai import FakeOpenAI
    from prism.testing._server.faults import Fault
    from prism.testing._server.wire import Asked

__all__ = [
    "AgentMaker",
    "Asked",
    "Exploration",
    "FailingReasoner",
    "FakeOllama",
    "FakeOpenAI",
    "Fault",
    "FrozenClock",
    "LateReasoner",
    "RecordingReasoner",
    "ScriptMaker",
    "ScriptedReasoner",
    "ScriptedWriter",
    "TransitionLog",
    "WriterMaker",
    "assert_path",
    "explore",
]

_OF_THE_EXTRA = {
    "Asked": "_server.wire",
    "Exploration": "_explore",
    "FakeOllama": "_server.fake_ollama",
    "FakeOpenAI": "_server.fake_openai",
    "Fault": "_server.faults",
    "explore": "_explore",
}
"""Names whose modules need packages of the extra ``testing``: imported at their first use."""


# a type checker would take any name to be here
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name that needs the extra."""
        if name not in _OF_THE_EXTRA:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

        try:
            module = import_module(f"{__name__}.{_OF_THE_EXTRA[name]}")
        except ModuleNotFoundError as error:
            raise MissingExtraError("testing", str(error.name)) from error

        # from now on it is found like any other name
        globals()[name] = getattr(module, name)

        return globals()[name]
