"""A llama.cpp server with a real model, and the same model as Ollama serves it.

Run in an environment with xllamacpp: ``python llama_server.py MODEL SLOTS THREADS``. It prints one
line of JSON with both addresses, and ends with its standard input. It uses nothing of prism.
"""

import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "small"
WINDOW = 2048
"""Tokens of a prompt and its reply."""

MOST_SECONDS_TO_LOAD = 60

SERVERS: list[Any] = []

_OPTIONS = {"num_predict": "max_tokens", "temperature": "temperature", "seed": "seed"}
_OPTIONS |= {name: name for name in ("top_k", "top_p", "min_p", "stop")}


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_llama(model: str, slots: int, threads: int) -> str:
    """Serve a model in OpenAI's dialect; return the address."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = free_port()
    params.n_ctx, params.n_parallel = WINDOW * slots, slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja, params.ui, params.verbosity = True, False, -1
    # it ends with its last reference
    SERVERS.append(server := xllamacpp.Server(params))
    address = str(server.listening_address)
    for _ in range(MOST_SECONDS_TO_LOAD * 20):
        if is_ready(address):
            return address
        time.sleep(0.05)
    raise SystemExit(f"{model} is not loaded after {MOST_SECONDS_TO_LOAD} s")


def is_ready(address: str) -> bool:
    """Return whether a server has loaded its model."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def to_llama(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request to Ollama's /api/chat in OpenAI's dialect."""
    options = body.get("options") or {}
    request = {_OPTIONS[name]: value for name, value in options.items() if name in _OPTIONS}
    request["messages"] = body["messages"]
    if isinstance(body.get("format"), dict):
        schema = {"name": "answer", "schema": body["format"]}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    if body.get("logprobs"):
        request |= {"logprobs": True, "top_logprobs": body.get("top_logprobs", 0)}
    return request


def to_ollama(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply in OpenAI's dialect as Ollama gives it."""
    (choice,), usage = reply["choices"], reply["usage"]
    answer = {
        "model": NAME,
        "message": {"role": "assistant", "content": choice["message"].get("content") or ""},
        "done": True,
        "done_reason": choice["finish_reason"],
        "prompt_eval_count": usage["prompt_tokens"],
        "eval_count": usage["completion_tokens"],
    }
    if (choice.get("logprobs") or {}).get("content"):
        answer["logprobs"] = choice["logprobs"]["content"]
    return answer


def serve_ollama(llama: str) -> str:
    """Serve the same model in Ollama's dialect; return the address."""
    entry = {"name": NAME, "model": NAME, "digest": "0" * 64, "size": 1, "context_length": WINDOW}
    show = {"capabilities": ["completion"], "model_info": {"llama.context_length": WINDOW}}
    fixed = {
        "/api/version": {"version": "0.12.11"},
        "/api/tags": {"models": [entry]},
        "/api/ps": {"models": [entry]},
        "/api/show": show,
        "/api/generate": {"model": NAME, "done": True, "done_reason": "load", "response": ""},
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def answer(self, status: int, data: object) -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = json.loads(
                self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
            )
            if self.path in fixed:
                self.answer(200, fixed[self.path])
            elif self.path != "/api/chat":
                self.answer(404, {"error": "404 page not found"})
            else:
                data = json.dumps(to_llama(body)).encode()
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"{llama}/v1/chat/completions", data, headers)
                try:
                    with urllib.request.urlopen(request, timeout=600) as reply:
                        self.answer(200, to_ollama(json.load(reply)))
                except urllib.error.HTTPError as error:
                    self.answer(error.code, {"error": error.read().decode()})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


if __name__ == "__main__":
    llama_address = serve_llama(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    addresses = {"openai": llama_address, "ollama": serve_ollama(llama_address)}
    sys.stdout.write(f"{json.dumps(addresses)}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)
