"""Executors by name: of Dask, of Ray, or returned by a function of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from prism.errors import InputError
from prism.science._libraries import library
from prism.worlds._addresses import module_at


def executor_named(name: str) -> AbstractContextManager[Executor]:
    """Return a context manager of an executor, which is closed at the end of the block.

    Args:
        name: ``dask:ADDRESS`` of a scheduler; ``ray:ADDRESS`` of a cluster, ``ray:auto`` for one
            that is running; or ``file.py:function`` or ``package.module:function``, a function
            without arguments that returns an executor.

    Raises:
        InputError: If the name is wrong, or nothing answers at the address.
        MissingExtraError: If the library is not installed.
    """
    kind, _, address = name.partition(":")
    if not address:
        ways = ", ".join((*(f"{each}:ADDRESS" for each in _KINDS), "FILE.py:FUNCTION"))
        raise InputError(f"must be one of {ways}, got {name!r}", field="on")

    return _KINDS[kind](address) if kind in _KINDS else _of_function(name)


def _of_function(name: str) -> Executor:
    place, _, function = name.rpartition(":")
    try:
        made = getattr(module_at(place), function)()
    except AttributeError as error:
        raise InputError(f"{name}: {error}", field="on") from None
    except InputError as error:
        # a fault in the user's file says where it is
        if error.path is not None:
            raise
        raise InputError(error.problem, field="on") from None
    if not isinstance(made, Executor):
        kind = type(made).__name__
        raise InputError(
            f"{name} must return a concurrent.futures.Executor, got {kind}", field="on"
        )

    return made


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    """Yield the workers of a scheduler of Dask."""
    distributed = library("distributed", extra="science-dask")
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise InputError(f"dask:{address}: {error}", field="on") from None
    # the same run may be sent twice, after a worker was lost
    with client, client.get_executor(pure=False) as executor:
        yield executor


class _Ray(Executor):
    """The workers of a cluster of Ray, which has no executor of its own."""

    def __init__(self, address: str) -> None:
        self._ray = library("ray", extra="science-ray")
        try:
            self._ray.init(address=address, log_to_driver=False)
        except (OSError, ValueError) as error:
            raise InputError(f"ray:{address}: {error}", field="on") from None

    def submit(self, task: Callable[..., Any], /, *args: Any, **more: Any) -> Any:
        # the driver submits lost runs again
        remote = self._ray.remote(max_retries=0, num_cpus=1)(task)
        return remote.remote(*args, **more).future()

    def shutdown(self, wait: bool = True, **_: Any) -> None:  # noqa: ARG002
        self._ray.shutdown()


_SECONDS_TO_CONNECT = 10
_KINDS: Mapping[str, Callable[[str], AbstractContextManager[Executor]]] = {
    "dask": _dask,
    "ray": _Ray,
}
