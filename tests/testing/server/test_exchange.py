"""HTTP on the server's side."""

import json
from typing import Any

import pytest

from prism.testing import FakeOllama

VERSION = b"GET /api/version HTTP/1.1\r\nHost: x\r\n\r\n"


def post(path: str, body: bytes) -> bytes:
    """Write a request as it goes over the wire."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "body", [b"{", b"\xff\xfe", b'{"a": nope}'], ids=["cut off", "no text", "no value"]
)
async def test_invalid_json_is_refused(server: FakeOllama, talk: Any, body: bytes) -> None:
    """A body that is no JSON is a 400, after which the same connection carries the next request."""
    (status, refusal), good = await talk(post("/api/chat", body) + VERSION, 2)
    assert status == 400
    assert refusal["error"].startswith("invalid JSON: ")
    assert good == (200, {"version": "0.35.0"})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", []),
        ("/api/chat", {}),
        ("/api/chat", {"model": "llama3.2", "messages": []}),
        ("/api/chat", {"model": "llama3.2", "messages": ["hi"]}),
        ("/api/generate", None),
    ],
)
async def test_an_incomplete_question_is_refused(
    server: FakeOllama, talk: Any, path: str, body: Any
) -> None:
    """A body of the wrong shape is a 400 that says what is wrong, and is no question."""
    ((status, refusal),) = await talk(post(path, json.dumps(body).encode()))
    assert status == 400
    assert refusal["error"].startswith("invalid request: ")
    assert server.questions == []


async def test_unknown_paths_are_not_found(talk: Any) -> None:
    """Another path or method has the 404 that Ollama gives."""
    for request in (
        VERSION.replace(b"version", b"nothing"),
        post("/api/tags", b""),
        post("/api/show", b"{}"),
    ):
        ((status, body),) = await talk(request)
        assert status == 404
        assert "not found" in (body if isinstance(body, str) else body["error"])


async def test_requests_sent_at_once_are_answered_in_order(server: FakeOllama, talk: Any) -> None:
    """Several requests sent at once on one connection are answered in their order."""
    answers = await talk(VERSION + post("/api/show", b'{"model": "llama3.2"}') + VERSION, 3)
    assert [list(body) for _, body in answers] == [
        ["version"],
        ["model_info", "details", "capabilities"],
        ["version"],
    ]
