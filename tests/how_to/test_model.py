"""A model in a loop of one's own."""

from pathlib import Path
from types import ModuleType

import pytest

from prism.testing import FakeOllama, Fault
from tests.how_to.conftest import Load
from tests.kit.commands import Prism


@pytest.fixture
def guide(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the guide's code, which leaves its logs in the folder."""
    monkeypatch.chdir(tmp_path)
    return load("model")


def test_the_log_shows_the_decision(guide: ModuleType, prism: Prism) -> None:
    """The command finds the decision in the log of the guide."""
    assert guide.ada.state is guide.Work.ANSWERED
    assert "answered" in prism("log", "decision", "events.jsonl").out


async def test_the_named_fallback_is_taken(guide: ModuleType) -> None:
    """A useless answer leads to the fallback of the guide, not to the first option."""
    Path("events.jsonl").unlink()
    clerk = guide.Clerk("Bo")
    with FakeOllama() as server:
        server.fail_always(Fault.says("As you like."))
        await guide.work([clerk], [guide.Ticket(8, "Where is it?")], server.host)
    assert clerk.state is guide.Work.ESCALATED
