"""Addresses of servers, names of models, both in one text, and secrets that a server may repeat."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Literal, get_args
from urllib.parse import SplitResult, quote, urlsplit

from prism.errors import FieldValueError, InputError

Kind = Literal["ollama", "openai"]
"""The kinds of servers."""

DEFAULT_HOST = "http://127.0.0.1:11434"

_PORTS = {"": 11434, "http": 80, "https": 443}
"""The default port by scheme, as in the ollama client."""

_SHORTEST_SECRET = 3


def check_address(host: str) -> None:
    """Refuse an invalid address of a server, and one with a secret in it.

    Raises:
        FieldValueError: If it is one of these; the message shows no name and password.
    """
    # what follows may contain a password
    quoted = repr(safe_address(host)) if isinstance(host, str) else f"a {type(host).__name__}"
    if isinstance(host, str) and re.search("[@?#]", host):
        raise FieldValueError(
            f"host must be an address without @, ? and #, got {quoted} besides: a key, or a name "
            "and password ('Basic ...', as in a header), comes from an environment variable (the "
            "setting key)"
        )
    if not _is_usable(host):
        raise FieldValueError(f"host must be an address such as {DEFAULT_HOST}, got {quoted}")


def _is_usable(host: str) -> bool:
    try:
        host.encode()
        parts = _split(host)
        return parts.port != 0 and bool(parts.hostname) and parts.scheme in ("http", "https")
    except (AttributeError, TypeError, ValueError):
        return False


def same_address(host: str) -> tuple[str, str, int, str]:
    """Return scheme, name, port and path, which are equal for all spellings of an address."""
    parts = _split(host)
    port = parts.port or _PORTS[parts.scheme if "://" in host else ""]
    return parts.scheme, parts.hostname or "", port, parts.path.strip("/")


def is_local(host: str) -> bool:
    """Return whether an address is one of this machine."""
    name = (_split(host).hostname or "").removesuffix(".")
    try:
        address = ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    # 0.0.0.0 is where a server listens, and reaches this machine, too
    return address.is_loopback or address.is_unspecified


def safe_address(host: str) -> str:
    """Return an address without the parts that may contain a name, a password or a key."""
    return re.sub(r"[?#].*", "", re.sub(r"^(\w+://)?.*@", r"\1", host, flags=re.S), flags=re.S)


def with_port(host: str) -> str:
    """Return the address of an Ollama server with its port, by default 11434.

    An address with a scheme has that scheme's default port.
    """
    parts = _split(host)
    if "://" in host or parts.port:
        return host if "://" in host else f"http://{host}"

    name, slash, path = host.partition("/")
    return f"http://{name.rstrip(':')}:{_PORTS['']}{slash}{path}"


def with_version(host: str) -> str:
    """Return the address of an OpenAI-compatible server with the prefix of all its paths.

    That is ``/v1``, unless it has a path.
    """
    address = host if "://" in host else f"http://{host}"
    return address if _split(address).path.strip("/") else f"{address.rstrip('/')}/v1"


def secrets_in(key: str) -> list[str]:
    """Return the spellings of a key that a server may repeat, the longest first."""
    parts = [key, key.removeprefix("Basic ")]
    with suppress(ValueError):  # where it is no name and password in Base64
        parts.append(b64decode(parts[1], validate=True).decode().partition(":")[2])
    spelled = {each for part in parts for each in _spellings(part)}
    # a shorter one would occur in any text, and protects nothing
    return sorted((each for each in spelled if len(each) >= _SHORTEST_SECRET), key=len)[::-1]


def _spellings(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret in JSON, in JSON within JSON, and in an address."""
    in_json = json.dumps(secret)[1:-1]
    for text in (secret, in_json, json.dumps(in_json)[1:-1]):
        # as some servers write it in JSON, which others put into theirs
        yield from (text.replace("/", slash) for slash in ("/", "\\/", "\\\\/"))

    yield quote(secret)
    yield quote(secret, safe="")


def model_name(name: str) -> str:
    """Return the full name of a model in lower case, which is equal for all ways to name it."""
    # a server may list its models with their registry
    short = re.sub(r"^registry\.[^/]+/", "", name.strip().lower()).removeprefix("library/")
    # the tag comes after the last slash; an earlier colon belongs to the port of a registry
    return short if ":" in short.rpartition("/")[2] else f"{short}:latest"


def _split(host: str) -> SplitResult:
    return urlsplit(host if "://" in host else f"http://{host}")


# A model and its servers in one text

FORM = "ollama:llama3.2@127.0.0.1 or openai:llama3.2@http://127.0.0.1:8000"

_NAME = re.compile(
    # the name of a model may begin with @, as in Cloudflare's, and end with its quantisation,
    # which is any word before hosts, but never a password
    r"(?P<model>.[^@]*(?:@(?:[\w.-]{1,16}(?=@)|i?q\d\w*|b?f16|fp?\d+|mxfp4|\d+-?bit))?)(?:@(?P<hosts>.*))?",
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
    is_server = bool(colon) and server.lower() in get_args(Kind)
    parts = _NAME.fullmatch(rest if is_server else text.strip())
    if parts is None or not parts["model"].strip():
        raise InputError(f"must name a model, as in {FORM}", field="model")
    if "://" in parts["model"]:
        problem = f"begins with an address: write the name of the model before it, as in {FORM}"
        raise InputError(problem, field="model")

    settings: dict[str, Any] = {"model": parts["model"].strip()}
    if is_server:
        settings["server"] = server.lower()
    if parts["hosts"] is not None:
        settings["hosts"] = _hosts_in(parts["hosts"])
    return settings


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
