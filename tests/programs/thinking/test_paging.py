"""Prompts stay within their limits, and within the window of the server."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import InputError
from prism.llm import Model
from prism.programs.thinking import CognitiveAgent, Config, Limit, Memory
from tests.kit.cognition import FIXED, LARGEST, action, add, letters, limited, thought, working
from tests.kit.writers import prompts_of, writer_of


@given(
    held=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.text("xy ", max_size=400)),
    thoughts=st.lists(st.text("xyz", min_size=1, max_size=200), max_size=5),
    room=st.integers(50, 2000),
)
@settings(max_examples=40)
async def test_no_prompt_exceeds_the_hard_limit_and_nothing_is_lost(
    held: dict[str, str], thoughts: list[str], room: int
) -> None:
    """Whatever is in the memory, in whatever state; values that moved are in storage."""
    document = {
        "working_memory": held,
        **{f"thinking_log_{number:03}": each for number, each in enumerate(thoughts, 1)},
    }
    memory = Memory.in_memory(document)
    before = dict(memory.working) | dict(memory.thoughts)
    writer = writer_of([thought("on", "executing"), add("q", "z"), thought("so", "paging")])
    agent = CognitiveAgent(limited(None, LARGEST + room), memory, writer, count=letters)
    for _ in range(5):
        await agent.cycle()
    assert all(len(prompt) <= LARGEST + room for prompt in prompts_of(writer))
    after = {**memory.to_dict()["storage"], **memory.working, **memory.thoughts}
    assert before.items() <= after.items()


async def test_the_least_recently_used_go_first() -> None:
    """Down to three quarters of the room, so that the next few fit."""
    agent = CognitiveAgent(
        limited(FIXED + 1000), Memory.in_memory(working(12)), writer_of([thought()]), count=letters
    )
    (paged,) = (await agent.cycle()).paged
    assert paged.moved_out == tuple(f"m{number}" for number in range(len(paged.moved_out)))
    assert paged.tokens_after <= FIXED + 750
    assert agent.memory.stored("m0") == "0" * 100


async def test_an_older_value_is_never_shown_as_the_present_one() -> None:
    """Not as what a search found, not by loading, and not after paging."""
    memory = Memory.in_memory({"state": "executing", "storage": {"town": "Rome"}})
    replies = [
        add("town", "Paris"),
        thought("x", "executing"),
        action("storage_search", "town"),
        thought("y", "executing"),
        action("storage_load", "town"),
        thought("z"),
    ]
    writer = writer_of(replies)
    agent = CognitiveAgent(Config(), memory, writer)
    for _ in replies:
        await agent.cycle()
    assert all("Rome" not in prompt for prompt in prompts_of(writer)[1:])
    assert memory.working == {"town": "Paris"}
    memory.page_out("town")
    assert (memory.stored("town"), memory.versions("town")) == ("Paris", ["Rome"])


def test_limits_that_no_prompt_can_keep_are_refused() -> None:
    """The fixed parts have to fit, whatever the memory holds."""
    with pytest.raises(InputError, match="even without memories"):
        CognitiveAgent(Config(paging_limit=Limit(max_tokens=90)), Memory.in_memory())


# The window of a server


class Small(BaseHTTPRequestHandler):
    """A server of 4,096 tokens of three bytes each, which reports its window."""

    kind = "llama.cpp"
    sizes: list[int]

    def do_GET(self) -> None:
        paths = {
            "llama.cpp": ("/props", {"default_generation_settings": {"n_ctx": 4096}}),
            "vLLM": ("/v1/models", {"data": [{"id": "m", "max_model_len": 4096}]}),
        }
        path, body = paths[self.kind]
        if self.path == path:
            self._send(200, body)
        elif self.path == "/v1/models":
            self._send(200, {"data": [{"id": "m"}]})
        else:
            self._send(404, {"error": "no such path"})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        size = len(prompt.encode()) // 3 + asked["max_tokens"]
        self.sizes.append(size)
        if size > 4096:
            self._send(400, {"error": {"message": "the request exceeds the context size"}})
            return
        number = len(self.sizes)
        said = {"agent": {"next_state": "executing", "thinking_log": f"idea {number} " * 9}}
        if "You are in the state executing" in prompt:
            act = {"type": "working_memory_add", "tags": f"m{number}", "value": "word " * 60}
            said = {"agent": {"action": act}}
        message = {"role": "assistant", "content": json.dumps(said)}
        self._send(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def log_message(self, *_: Any) -> None:
        pass

    def _send(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(params=["llama.cpp", "vLLM"])
def small(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[int]]]:
    """Return the address of a server with a small window, and the sizes of what it was sent."""
    handler = type("Handler", (Small,), {"kind": request.param, "sizes": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", handler.sizes
    server.shutdown()
    server.server_close()


async def test_limits_are_lowered_to_the_window_of_the_server(
    small: tuple[str, list[int]], logger: Any, capture: Any
) -> None:
    """With the usual configuration, sixty cycles run: nothing is cut, nothing stops."""
    address, sizes = small
    model = Model("m", hosts=(address,), server="openai")
    agent = CognitiveAgent(Config(goal="g"), Memory.in_memory(), model, logger=logger)
    cycles = await agent.run(60)
    assert [cycle.outcome for cycle in cycles] == ["done"] * 60
    assert max(sizes) <= 4096
    assert any(cycle.paged for cycle in cycles)
    (told,) = (event for event in capture.entries if event["event"] == "cognition.window")
    assert (told["window"], told["hard_limit"]) == (4096, 2048)
