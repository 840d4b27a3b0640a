"""A model, its server and its hosts in one text: ``ollama:llama3.2@127.0.0.1``."""

from __future__ import annotations

import re
from typing import Any, get_args

from prism.errors import FieldValueError, InputError
from prism.llm._addresses import check_address
from prism.llm._settings import Server

FORM = "ollama:llama3.2@127.0.0.1 or openai:llama3.2@http://127.0.0.1:8000"

_OTHERS = (
    *("anthropic", "azure", "gemini", "gpt", "groq", "http", "https", "huggingface", "litellm"),
    *("llama.cpp", "llamacpp", "lmstudio", "mistral", "openrouter", "sglang", "tgi", "vllm"),
)
"""Common mistakes before the colon: neither a kind of server nor the name of a model."""


_NAME = re.compile(
    # the name of a model may begin with @, as in Cloudflare's, and end with its quantisation
    r"(?P<name>.[^@]*(?:@(?:i?q\d\w*|b?f16|fp?\d+|mxfp4|\d+-?bit))?)(?:@(?P<hosts>.*))?",
    re.IGNORECASE | re.DOTALL,
)

_OF_OPENAI = re.compile(r"(chat)?gpt-[345]|o[134](-|:|$)")
"""The beginnings of names that only servers with OpenAI's API know; Ollama has ``gpt-oss``."""


def require_server(name: str) -> None:
    """Refuse a model that is OpenAI's by its name, and would be looked for on Ollama.

    Raises:
        InputError: If it is such a name.
    """
    if _OF_OPENAI.match(name):
        raise InputError(
            f"{name!r} is a model of OpenAI by its name, and no server is named: write openai: "
            f"before it, as in openai:{name}@http://gpu1:8000, for a server with OpenAI's API, or "
            f"ollama:{name} for a model of that name on Ollama",
            field="model",
        )


def model_in_text(text: str) -> dict[str, Any]:
    """Return the settings in a text: ``model``, and ``server`` and ``hosts`` if given.

    Args:
        text: ``[SERVER:]NAME[@HOST[,HOST...]]``. The part before the first colon is a server only
            if it is ``ollama`` or ``openai``: ``llama3.2:3b`` is a name.

    Raises:
        InputError: If it is invalid; the message shows no name and password.
    """
    server, rest = _server_in(text.strip())
    parts = _NAME.fullmatch(rest)
    name, hosts = (rest, None) if parts is None else parts.group("name", "hosts")
    found: dict[str, Any] = {} if server is None else {"server": server}
    found["model"] = name.strip()
    if not found["model"]:
        raise InputError(f"must name a model, as in {FORM}", field="model")
    if "://" in name:
        raise InputError(
            f"begins with an address: write the name of the model before it, as in {FORM}",
            field="model",
        )

    if hosts is not None:
        found["hosts"] = _hosts_in(hosts)
    return found


def _server_in(text: str) -> tuple[str | None, str]:
    before, colon, after = text.partition(":")
    known = get_args(Server)
    if colon and before.lower() in known:
        return before.lower(), after

    is_other = before.lower() in _OTHERS and not after.startswith("//")
    # a name has one colon, before its tag; a registry with a port is followed by a slash
    has_two = colon and "@" not in before and re.match(r"[^/@]*:", after)
    if colon and (is_other or has_two):
        raise InputError(
            f"{before!r} is not a kind of server: use ollama, or openai for any server with "
            f"OpenAI's API (vLLM, llama.cpp, LM Studio), as in {FORM}",
            field="model",
        )

    return None, text


def _hosts_in(text: str) -> tuple[str, ...]:
    hosts = tuple(host.strip() for host in text.split(","))
    for number, host in enumerate(hosts, 1):
        if not host:
            raise InputError(f"has no host after @ or a comma: write {FORM}", field="model")
        # a password with a comma is split here, so no part may be shown
        try:
            if len(hosts) > 1 and "@" in host and "://" not in host:
                raise FieldValueError("a name and password need a scheme before them")
            check_address(host)
        except FieldValueError:
            which = "" if len(hosts) == 1 else f" {number} of {len(hosts)}"
            problem = (
                f"names a host{which} that is not an address (write a comma in it as %2C): "
                f"write {FORM}"
            )
            raise InputError(problem, field="model") from None

    return hosts
