"""Addresses of servers, the parts of them that may be shown, and names of models."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from prism.errors import FieldValueError, InputError

DEFAULT_HOST = "http://127.0.0.1:11434"

_HOST_VARIABLE = "OLLAMA_HOST"
_HIDDEN = "***@"
"""A name and a password, in a file."""

_PORTS = {"": 11434, "http": 80, "https": 443}
"""The default port by scheme, as in the ollama client."""

_SHORTEST_SECRET = 3


class Address(str):
    """The address of a server, without the name, password or key that was given in it.

    Printing, logging or copying it reveals only the public part; `full` is for making a client.
    """

    __slots__ = ("full",)

    full: str

    @classmethod
    def of(cls, given: str) -> Address:
        """Return an address that hides the secrets of a given one."""
        if isinstance(given, Address):
            return given

        address = cls(shown_address(given))
        address.full = given
        return address

    @property
    def kept(self) -> str:
        """The address for a file, with stars for the name and password that it had."""
        scheme, separator, rest = self.rpartition("://")
        return f"{scheme}{separator}{_HIDDEN}{rest}" if _user_of(self.full) else str(self)


def full_address(host: str) -> str:
    """Return the address of a server as it was given, including secrets."""
    return host.full if isinstance(host, Address) else host


def check_address(host: str) -> None:
    """Refuse an invalid address of a server.

    Raises:
        FieldValueError: If it is invalid; credentials in it are not shown.
    """
    if not _is_usable(host):
        # it may contain a password
        shown = repr(shown_address(host)) if isinstance(host, str) else f"a {type(host).__name__}"
        is_secret_wrong = isinstance(host, str) and _is_usable(shown_address(host))
        hint = " (write / @ : in a password as %2F %40 %3A)" if is_secret_wrong else ""
        raise FieldValueError(f"host must be an address such as {DEFAULT_HOST}, got {shown}{hint}")
    if re.search("[?#]", host):
        raise FieldValueError(
            f"host must end before ? or #, as in {shown_address(host)}: what follows is never "
            "sent; a key comes from an environment variable (the setting key)"
        )


def _is_usable(host: str) -> bool:
    try:
        host.encode()
        parts = _split(host)
        is_whole = parts.port != 0 and bool(parts.hostname) and not _is_ambiguous(host)
        return is_whole and parts.scheme in ("http", "https")
    except (AttributeError, TypeError, ValueError):
        return False


def same_address(host: str) -> tuple[str, str, int, str]:
    """Return scheme, name, port and path, which are equal for all spellings of an address."""
    parts = _split(host)
    port = parts.port or _PORTS[parts.scheme if "://" in host else ""]
    return parts.scheme, parts.hostname or "", port, parts.path.strip("/")


def is_local(host: str) -> bool:
    """Return whether an address is one of this machine."""
    name = _split(host).hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def server_key(host: str) -> tuple[str, str, int, str]:
    """Return a key that is equal for all addresses of one server, in any dialect.

    Ollama serves OpenAI's dialect under ``/v1``. Behind a gateway, other paths are other servers.
    """
    scheme, name, port, path = same_address(host)
    return scheme, name, port, re.sub(r"(^|/)v1$", "", path)


def shown_address(host: str) -> str:
    """Return an address as it was written, without the name and password of a user.

    The part after ``?`` or ``#`` is also left out, since it is not needed but may contain a key.
    """
    # up to the last @ before the path, or at all if a password holds an unescaped slash
    usual = re.sub(r"^(\w+://)?[^/?#]*@", r"\1", host)
    if _is_ambiguous(usual) or not _has_valid_port(usual):
        usual = re.sub(r"^(\w+://)?.*@", r"\1", host, flags=re.S)

    return re.sub(r"[?#].*", "", usual, flags=re.S)


def with_port(host: str) -> str:
    """Return the address of an Ollama server with its port, by default 11434.

    An address with a scheme has that scheme's default port.
    """
    parts = _split(host)
    if "://" in host or parts.port:
        return host if "://" in host else f"http://{host}"

    place = re.split(r"[/?#]", host, maxsplit=1)[0]
    return f"http://{place.rstrip(':')}:{_PORTS['']}{host[len(place) :]}"


def with_version(host: str) -> str:
    """Return the address of an OpenAI-compatible server with the prefix of all its paths.

    That is ``/v1``, unless it has a path.
    """
    address = host if "://" in host else f"http://{host}"
    if not _split(address).path.strip("/"):
        # what follows ? or # is of no use in the middle of an address
        address = f"{re.sub(r'[?#].*', '', address, flags=re.S).rstrip('/')}/v1"

    return address


def credentials(host: str) -> tuple[str, str] | None:
    """Return the user name and password in an address."""
    parts = _split(host)
    if parts.username is None:
        return None
    return unquote(parts.username), unquote(parts.password or "")


def _user_of(host: str) -> tuple[str, str] | None:
    try:
        return credentials(host)
    except ValueError:
        return None


def with_credentials(config: Any, hosts: Iterable[str], path: Path) -> Any:
    """Return a run's configuration with the names and passwords of its hosts.

    Args:
        config: The configuration in its ``run.json``.
        hosts: Given addresses of its hosts; that in ``OLLAMA_HOST`` counts, too.
        path: The ``run.json``, for messages.

    Raises:
        InputError: If credentials are missing, or a given address does not belong to the run.
    """
    own = {server_key(host): host for host in _hosts_in(config)}
    given: dict[tuple[str, str, int, str], str] = {}
    for host in hosts:
        check_address(host)
        if server_key(host) not in own:
            servers = ", ".join(map(shown_address, own.values())) or "no server"
            problem = f"{shown_address(host)} is not one of the run's servers: it asks {servers}"
            raise InputError(problem, field="host")
        given[server_key(host)] = host
    usual = os.environ.get(_HOST_VARIABLE, "")
    if _user_of(usual):
        given.setdefault(server_key(usual), usual)

    def full(host: str) -> str:
        host = given.get(server_key(host), host)
        if _HIDDEN in host:
            raise InputError(
                f"the name and password for {shown_address(host)} are not kept: give them with "
                f"--host {host.replace(_HIDDEN, 'NAME:PASSWORD@')}, or set {_HOST_VARIABLE} to "
                "that address",
                path=path,
            )
        return host

    return _on_hosts(config, full)


def _hosts_in(data: Any) -> list[str]:
    hosts: list[str] = []
    _on_hosts(data, lambda host: hosts.append(host) or host)  # type: ignore[func-returns-value]
    return hosts


def _on_hosts(data: Any, change: Callable[[str], str]) -> Any:
    """Return plain data with a change of all hosts: of the run, its groups and its writer."""
    if isinstance(data, list):
        return [_on_hosts(each, change) for each in data]
    if not isinstance(data, Mapping):
        return data
    return {
        key: [*map(change, value)] if key == "host" and value else _on_hosts(value, change)
        for key, value in data.items()
    }


def secrets_in(host: str, key: str = "") -> list[str]:
    """Return secrets that a server may repeat, in all spellings, the longest first.

    Args:
        host: Address of the server. Its password is a secret, and so is the header made from name
            and password.
        key: The key that is sent if the address has no password.
    """
    user = _user_of(host)
    secrets = [key]
    if user is not None and len(user[1]) >= _SHORTEST_SECRET:
        secrets += [user[1], b64encode(":".join(user).encode()).decode()]

    spelled = {each for secret in secrets for each in _spellings(secret)}
    # a shorter one would occur in any text, and protects nothing
    return sorted((each for each in spelled if len(each) >= _SHORTEST_SECRET), key=len)[::-1]


def _spellings(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret in JSON, in JSON within JSON, and in an address."""
    in_json = json.dumps(secret)[1:-1]
    for text in (secret, in_json, json.dumps(in_json)[1:-1]):
        yield text
        # as some servers write it in JSON
        yield text.replace("/", "\\/")

    yield quote(secret)
    yield quote(secret, safe="")


def model_name(name: str) -> str:
    """Return the full name of a model in lower case, which is equal for all ways to name it."""
    # a server may list its models with their registry
    short = re.sub(r"^registry\.[^/]+/", "", name.strip().lower()).removeprefix("library/")
    # the tag comes after the last slash; an earlier colon belongs to the port of a registry
    return short if ":" in short.rpartition("/")[2] else f"{short}:latest"


def _is_ambiguous(host: str) -> bool:
    """Return True if an address has a port, and then an ``@``: a password may have a slash."""
    rest = host.partition("://")[2] or host
    return re.match(r"[^/?#@]*:\d*[/?#].*@", rest, re.DOTALL) is not None


def _has_valid_port(host: str) -> bool:
    try:
        _ = _split(host).port
    except ValueError:
        return False

    return True


def _split(host: str) -> SplitResult:
    return urlsplit(host if "://" in host else f"http://{host}")
