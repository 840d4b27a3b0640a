"""A browser of the viewer, by requests alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from prism.watch import Watching, watch
from tests.kit.waiting import wait_until


class Visitor(httpx.Client):
    """A browser that opens the printed address."""

    def __init__(self, watching: Watching) -> None:
        super().__init__(base_url=watching.url.partition("/?")[0], timeout=30)
        self.watching = watching

    def __enter__(self) -> Self:
        super().__enter__()
        assert self.get(self.watching.url).status_code == 200
        return self

    def ask(self, path: str, **query: Any) -> Any:
        """Return the answer to a request."""
        answer = self.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def html(self, path: str, **query: Any) -> dict[str, str]:
        """Return the sections of a part of the page by their names, in their order."""
        return {each["anchor"]: each["html"] for each in self.ask(path, **query)["sections"]}

    def wait_until_read(self) -> None:
        """Wait until all of the log is in the tables."""
        wait_until(lambda: (head := self.ask("/head"))["read"] == head["size"] > 0)


@contextmanager
def visiting(run: Path) -> Iterator[Visitor]:
    """Show a run whose log has been read to a browser."""
    watching = watch(run)
    try:
        with Visitor(watching) as visitor:
            visitor.wait_until_read()
            yield visitor
    finally:
        watching.stop()
