"""Names and passwords in the addresses of servers: used by a run, but never written down."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.llm._addresses import check_address, credentials, same_address, shown_address

_HOST_VARIABLE = "OLLAMA_HOST"


def without_credentials(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run is without names and passwords, and with the hosts that had them.

    Args:
        config: What the run is, as plain data.
    """
    kept = dict(config)
    hosts = kept.get("host")
    if not isinstance(hosts, list):
        return kept

    kept["host"] = [shown_address(host) for host in hosts]
    secured = [shown_address(host) for host in hosts if _has_credentials(host)]
    if secured:
        kept["credentials"] = secured

    return kept


def with_credentials(
    config: Mapping[str, Any], hosts: Iterable[str], path: Path
) -> Mapping[str, Any]:
    """Return what a run is with the names and passwords of its hosts.

    Args:
        config: What the run is, as its ``run.json`` has it.
        hosts: Addresses of its hosts, as far as they are given.
        path: The ``run.json``, for messages.

    Raises:
        InputError: If credentials are missing, or a given address is none of the run's.
    """
    writer = config.get("writer", {})
    # a writer may have a model, and servers, of its own
    of_writer = writer.get("model")
    others = of_writer if isinstance(of_writer, Mapping) else {}
    own, theirs = config.get("host", []), others.get("host", [])
    given = _by_address(hosts, [*own, *theirs])
    if config.get("credentials") or others.get("credentials"):
        given = {**_from_environment(), **given}

    found = _with_given(config, given, path)
    if not theirs:
        return found

    return {**found, "writer": {**writer, "model": _with_given(others, given, path)}}


def _with_given(
    config: Mapping[str, Any], given: Mapping[tuple[Any, ...], str], path: Path
) -> Mapping[str, Any]:
    """Return a model's options with the full addresses of its hosts."""
    own, secured = config.get("host", []), config.get("credentials", ())
    full = [given.get(same_address(host), host) for host in own]
    for host in full:
        if host in secured and not _has_credentials(host):
            raise InputError(
                f"the name and password for {host} are not kept: give them with "
                f"--host {_example(host)}, or set {_HOST_VARIABLE} to that address",
                path=path,
            )

    return {**config, "host": full} if own else config


def _by_address(hosts: Iterable[str], own: Iterable[str]) -> dict[tuple[Any, ...], str]:
    known = {same_address(host): host for host in own}
    found = {}
    for host in hosts:
        check_address(host)
        if same_address(host) not in known:
            servers = ", ".join(known.values()) or "no server"
            problem = f"{shown_address(host)} is none of the run's servers: it asks {servers}"
            raise InputError(problem, field="host")

        found[same_address(host)] = host

    return found


def _from_environment() -> dict[tuple[Any, ...], str]:
    host = os.environ.get(_HOST_VARIABLE, "")
    return {same_address(host): host} if host and _has_credentials(host) else {}


def _has_credentials(host: str) -> bool:
    try:
        return credentials(host) is not None
    except ValueError:
        return False


def _example(host: str) -> str:
    scheme, separator, rest = host.rpartition("://")
    return f"{scheme}{separator}NAME:PASSWORD@{rest}"
