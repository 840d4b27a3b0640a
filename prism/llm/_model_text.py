"""A model, its server and its hosts in one text: ``ollama:llama3.2@127.0.0.1``."""

from __future__ import annotations

import re
from typing import Any, get_args

from prism.errors import FieldValueError, InputError
from prism.llm._addresses import check_address
from prism.llm._settings import Server

FORM = "ollama:llama3.2@127.0.0.1 or openai:llama3.2@http://127.0.0.1:8000"

_NAME = re.compile(
    # the name of a model may begin with @, as in Cloudflare's, and end with its quantisation
    r"(?P<model>.[^@]*(?:@(?:i?q\d\w*|b?f16|fp?\d+|mxfp4|\d+-?bit))?)(?:@(?P<hosts>.*))?",
    re.IGNORECASE | re.DOTALL,
)


def model_in_text(text: str) -> dict[str, Any]:
    """Return the settings in a text: ``model``, and ``server`` and ``hosts`` if given.

    Args:
        text: ``[SERVER:]NAME[@HOST[,HOST...]]``. The part before the first colon is a server only
            if it is ``ollama`` or ``openai``: ``llama3.2:3b`` is a name.

    Raises:
        InputError: If it is invalid; the message shows no name and password.
    """
    server, colon, rest = text.strip().partition(":")
    is_server = bool(colon) and server.lower() in get_args(Server)
    parts = _NAME.fullmatch(rest if is_server else text.strip())
    if parts is None or not parts["model"].strip():
        raise InputError(f"must name a model, as in {FORM}", field="model")
    if "://" in parts["model"]:
        problem = f"begins with an address: write the name of the model before it, as in {FORM}"
        raise InputError(problem, field="model")

    found: dict[str, Any] = {"model": parts["model"].strip()}
    if is_server:
        found["server"] = server.lower()
    if parts["hosts"] is not None:
        found["hosts"] = _hosts_in(parts["hosts"])
    return found


def _hosts_in(text: str) -> tuple[str, ...]:
    hosts = tuple(host.strip() for host in text.split(","))
    for host in hosts:
        if not host:
            raise InputError(f"has no host after @ or a comma: write {FORM}", field="model")
        # a password with a comma would be split here, so no part may be shown
        try:
            check_address(host)
        except FieldValueError:
            problem = "names a host that is not an address"
            raise InputError(f"{problem}: write {FORM}", field="model") from None

    return hosts
