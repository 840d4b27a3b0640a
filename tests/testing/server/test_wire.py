"""Ollama's wire format, read and written."""

import pytest

from prism.testing._server import wire


@pytest.mark.parametrize("body", [None, [], {}, {"model": "m"}, {"model": "m", "messages": []}])
def test_an_incomplete_request_is_an_error(body: object) -> None:
    """A request without a model, or a chat without messages, cannot be read."""
    with pytest.raises((AttributeError, IndexError, KeyError, TypeError)):
        wire.read_question(wire.CHAT, body)
