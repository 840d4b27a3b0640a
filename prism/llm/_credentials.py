"""Names and passwords in the addresses of servers: used by a run, but never written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.llm._addresses import (
    check_address,
    credentials,
    server_key,
    shown_address,
)

_HOST_VARIABLE = "OLLAMA_HOST"

_Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]


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


def full_address(host: str) -> str:
    """Return the address of a server as it was given, including secrets."""
    return host.full if isinstance(host, Address) else host


def without_credentials(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's configuration without names and passwords, and with the hosts that had them.

    Args:
        config: The run's configuration, as plain data.
    """
    secured = [shown_address(host) for host in _hosts_of(config) if _has_credentials(host)]
    kept = _everywhere(config, lambda group: _on_hosts(group, lambda it: shown_address(str(it))))
    if secured:
        kept["credentials"] = list(dict.fromkeys(secured))

    return kept


def with_credentials(
    config: Mapping[str, Any], hosts: Iterable[str], path: Path
) -> Mapping[str, Any]:
    """Return a run's configuration with the names and passwords of its hosts.

    Args:
        config: The configuration in its ``run.json``.
        hosts: Given addresses of its hosts.
        path: The ``run.json``, for messages.

    Raises:
        InputError: If credentials are missing, or a given address does not belong to the run.
    """
    own = _hosts_of(config)
    given = _by_address(hosts, own)
    secured = {host for group in _groups_of(config) for host in group.get("credentials", ())}
    if secured:
        given = {**_from_environment(), **given}

    full = {host: given.get(server_key(host), host) for host in own}
    _require_credentials(full.values(), secured, path)
    return _everywhere(config, lambda group: _on_hosts(group, full.__getitem__))


def _parts_with_models(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other parts with a model: a writer, and what decides after a run diverges."""
    parts = {name: config.get(name, {}) for name in ("writer", "then")}
    return {name: part for name, part in parts.items() if isinstance(part.get("model"), Mapping)}


def _require_credentials(hosts: Iterable[str], secured: Container[str], path: Path) -> None:
    for host in hosts:
        if host in secured and not _has_credentials(host):
            raise InputError(
                f"the name and password for {host} are not kept: give them with "
                f"--host {_example(host)}, or set {_HOST_VARIABLE} to that address",
                path=path,
            )


def _hosts_of(config: Mapping[str, Any]) -> list[str]:
    """Return all hosts of a run, including those for only some agents."""
    return [host for group in _groups_of(config) for host in group.get("host") or ()]


def _groups_of(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the groups of servers of a run, and of the parts that have models of their own."""
    yield config
    yield from config.get("models", {}).get("assigned", ())
    for part in _parts_with_models(config).values():
        yield from _groups_of(part["model"])


def _on_hosts(group: Mapping[str, Any], change: Callable[[str], str]) -> Mapping[str, Any]:
    hosts = group.get("host")
    return {**group, "host": [change(host) for host in hosts]} if hosts else group


def _everywhere(config: Mapping[str, Any], change: _Change) -> dict[str, Any]:
    """Return a configuration with a change of the settings of all its models."""
    found, models = {**change(config)}, config.get("models")
    if models:
        found["models"] = {**models, "assigned": [*map(change, models.get("assigned", ()))]}
    for name, part in _parts_with_models(config).items():
        found[name] = {**part, "model": _everywhere(part["model"], change)}

    return found


def _by_address(hosts: Iterable[str], own: Iterable[str]) -> dict[tuple[Any, ...], str]:
    known = {server_key(host): host for host in own}
    found = {}
    for host in hosts:
        check_address(host)
        if server_key(host) not in known:
            servers = ", ".join(known.values()) or "no server"
            problem = f"{shown_address(host)} is not one of the run's servers: it asks {servers}"
            raise InputError(problem, field="host")

        found[server_key(host)] = host

    return found


def _from_environment() -> dict[tuple[Any, ...], str]:
    host = os.environ.get(_HOST_VARIABLE, "")
    return {server_key(host): host} if host and _has_credentials(host) else {}


def _has_credentials(host: str) -> bool:
    try:
        return credentials(full_address(host)) is not None
    except ValueError:
        return False


def _example(host: str) -> str:
    scheme, separator, rest = host.rpartition("://")
    return f"{scheme}{separator}NAME:PASSWORD@{rest}"
