"""Parts for testing agents: reasoners, writers, model servers, assertions, coverage.

Most of them are also pytest fixtures: see `prism.pytest_plugin` and ``docs/testing.md``.
`explore` needs the extra: ``pip install 'prism-statecharts[testing]'``.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism.testing._paths import assert_path
from prism.testing._scripts import ScriptedReasoner, ScriptedWriter, ScriptMaker, WriterMaker
from prism.testing._stand_ins import (
    AgentMaker,
    FrozenClock,
    LateReasoner,
    RecordingReasoner,
    TransitionLog,
)

if TYPE_CHECKING:
    from prism.testing._explore import Exploration, explore
    from prism.testing._fake_ollama import FakeOllama
    from prism.testing._fake_openai import FakeOpenAI
    from prism.testing._faults import Fault
    from prism.testing._wire import Asked
else:
    # they take time to import, and one needs a package of the extra
    __getattr__, __dir__ = lazy_names(__name__, extra="testing")

__all__ = [
    "AgentMaker",
    "Asked",
    "Exploration",
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
