"""Addresses of servers, which parts of them may be shown, and names of models."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import SplitResult, unquote, urlsplit

from prism.errors import FieldValueError

DEFAULT_HOST = "http://127.0.0.1:11434"

_PORTS = {"": 11434, "http": 80, "https": 443}
"""The port where none is given, by scheme, as the ollama client takes it."""

_SHORTEST_PASSWORD = 3


def check_address(host: str) -> None:
    """Refuse an invalid address of a server.

    Raises:
        FieldValueError: If it is invalid; credentials in it are not shown.
    """
    try:
        parts = _split(host)
        usable = parts.port != 0 and parts.scheme in ("http", "https") and bool(parts.hostname)
    except (TypeError, ValueError):
        usable = False

    if not usable:
        shown = shown_address(host) if isinstance(host, str) else host
        raise FieldValueError(f"host must be an address such as {DEFAULT_HOST}, got {shown!r}")


def same_address(host: str) -> tuple[str, str, int, str]:
    """Return scheme, name, port and path: they are equal for all spellings of an address."""
    parts = _split(host)
    port = parts.port or _PORTS[parts.scheme if "://" in host else ""]
    return parts.scheme, parts.hostname or "", port, parts.path.strip("/")


def server_key(host: str) -> tuple[str, str, int, str]:
    """Return what is equal for all addresses of one server, whatever dialect it is asked in.

    Ollama serves OpenAI's dialect under ``/v1``; behind a gateway, other paths are other servers.
    """
    scheme, name, port, path = same_address(host)
    return scheme, name, port, re.sub(r"(^|/)v1$", "", path)


def shown_address(host: str) -> str:
    """Return an address as it was written, without the name and password of a user.

    What follows ``?`` or ``#`` is left out, too: it is not needed, but may hold a key.
    """
    # up to the last @ before the path, or at all if a password holds an unescaped slash
    usual = re.sub(r"^(\w+://)?[^/?#]*@", r"\1", host)
    if not _has_valid_port(usual):
        usual = re.sub(r"^(\w+://)?.*@", r"\1", host, flags=re.S)

    return re.sub(r"[?#].*", "", usual, flags=re.S)


def with_version(host: str, *, shown: bool = False) -> str:
    """Return the address of an OpenAI-compatible server with what all its paths begin with.

    Args:
        host: The address; ``/v1`` is added to one without a path.
        shown: Whether to leave out the name and password of a user.
    """
    address = host if "://" in host else f"http://{host}"
    if not _split(address).path.strip("/"):
        # what follows ? or # is of no use in the middle of an address
        address = f"{re.sub(r'[?#].*', '', address, flags=re.S).rstrip('/')}/v1"

    return shown_address(address) if shown else address


def credentials(host: str) -> tuple[str, str] | None:
    """Return the name and password of a user that an address holds."""
    parts = _split(host)
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def secrets_in(host: str) -> list[str]:
    """Return what a server may repeat, and nobody should keep: the password, and how it is sent."""
    try:
        user = credentials(host)
    except ValueError:
        return []

    # a shorter one would be found in any text, and protects nothing
    if user is None or len(user[1]) < _SHORTEST_PASSWORD:
        return []

    return [user[1], b64encode(":".join(user).encode()).decode()]


def model_name(name: str) -> str:
    """Return the full name of a model in lower case: it is equal for all ways to name the model."""
    # a server may list its models with the registry that they came from
    short = re.sub(r"^registry\.[^/]+/", "", name.strip().lower()).removeprefix("library/")
    # the tag stands behind the last slash; a colon before it belongs to a registry's port
    return short if ":" in short.rpartition("/")[2] else f"{short}:latest"


def _has_valid_port(host: str) -> bool:
    try:
        _ = _split(host).port
    except ValueError:
        return False

    return True


def _split(host: str) -> SplitResult:
    return urlsplit(host if "://" in host else f"http://{host}")
