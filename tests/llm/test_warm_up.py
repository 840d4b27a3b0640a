"""Loading a model on several servers before the first question."""

import asyncio

import pytest

from prism.errors import BadReplyError, ModelMissingError, TimedOutError, UnreachableError
from prism.testing import FakeOllama, Fault
from tests.kit.servers import Connect, Serve
from tests.kit.waiting import until

LOAD, VERSION = "/api/generate", "/api/version"


async def test_warming_up_reports_for_each_server(serve: Serve, connect: Connect) -> None:
    """The model is loaded everywhere, and where that fails the error stands beside the address."""
    good, bare, gone = serve(), serve(models=[]), serve()
    gone.stop()
    report = await connect(good, bare, gone).warm_up()
    assert report.pop(good.host) is None
    assert isinstance(report.pop(bare.host), ModelMissingError)
    assert isinstance(report.pop(gone.host), UnreachableError)
    assert report == {}


async def test_one_warm_server_is_enough(serve: Serve, connect: Connect) -> None:
    """A load that takes much longer than another is cancelled, and no connection stays open."""
    good, silent = serve(), serve()
    silent.fail_always(Fault.hang(), path=LOAD)
    report = await connect(good, silent, load_timeout=600).warm_up()
    assert report[good.host] is None
    assert isinstance(report[silent.host], TimedOutError)
    assert str(report[silent.host]) == f"tiny is not loaded at {silent.host} yet"
    await until(lambda: silent.open_connections == 0)


async def test_those_who_are_almost_ready_are_waited_for(serve: Serve, connect: Connect) -> None:
    """A server that takes a little longer than the first is waited for."""
    report = await connect(serve(), serve(latency=0.3)).warm_up()
    assert list(report.values()) == [None, None]


async def test_patience_has_an_end(serve: Serve, connect: Connect) -> None:
    """If no server is warm in time, all are told to be late."""
    servers = [serve() for _ in range(2)]
    for server in servers:
        server.fail_always(Fault.hang(), path=LOAD)
    async with asyncio.timeout(5):
        report = await connect(*servers, load_timeout=600).warm_up(0.2)
    assert [type(error) for error in report.values()] == [TimedOutError] * 2


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Fault.hang(), "TimedOutError"),
        (Fault.status(404, body=b"no page"), None),
        (Fault.body(b"{}"), None),
    ],
    ids=["silent", "no such page", "no version"],
)
async def test_a_silent_server_is_found_out_before_the_long_wait(
    server: FakeOllama, connect: Connect, fault: Fault, found: str | None
) -> None:
    """A server that does not tell its version is not asked to load; one with an odd version is."""
    server.fail_always(fault, path=VERSION)
    if found:
        server.fail_always(Fault.body(b"<html>"), path=LOAD)  # which would be another error
    (error,) = (await connect(timeout=0.5, load_timeout=5).warm_up()).values()
    assert (None if error is None else type(error).__name__) == found
    assert not isinstance(error, BadReplyError)
