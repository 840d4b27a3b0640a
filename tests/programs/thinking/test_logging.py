"""What an agent that thinks tells when something goes wrong."""

from typing import Any

import pytest

from tests.kit.cognition import add, thinker


@pytest.mark.parametrize("reply", ["", OSError("down"), add("a", "1")])
async def test_what_goes_wrong_is_one_warning(reply: Any, logger: Any, capture: Any) -> None:
    """A reply of no use, a model that fails, an action refused: each is told once."""
    await thinker([reply], logger=logger).cycle()
    warnings = [event for event in capture.entries if event["log_level"] == "warning"]
    assert len(warnings) == 1
    assert warnings[0]["reason"]
