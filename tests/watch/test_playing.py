"""A world that is played in a process of its own, over the server, as the page does."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import orjson
import pytest

from prism import replay, resume
from prism.testing import FakeOllama
from prism.watch import Watching
from prism.watch._playing import Playing
from prism.watch.server import Viewer
from tests.kit.visits import Visitor
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.slow

WORLD = '''
"""A world with faults."""

from prism.worlds import param
from prism.examples import Rumour


class Faulty(Rumour):
    """A world with faults."""

    ticks = 2
    mode: int = param(0, "0 works, 1 fails, 2 never ends, 3 dies", least=0, most=3)

    def round_begins(self) -> None:
        """Fail in the second round."""
        if self.round == 2 and self.mode == 1:
            raise ValueError("oh dear")
        while self.round == 2 and self.mode == 2:
            pass
        if self.round == 2 and self.mode == 3:
            import os

            os._exit(9)
'''


class Game:
    """A world that is played by requests."""

    def __init__(self, playing: Playing, client: Visitor) -> None:
        self.client = client
        self.status = playing.status

    def do(self, what: str, **more: Any) -> dict[str, Any]:
        """Give an order; return the answer."""
        return dict(self.client.post("/do", json={"do": what, **more}).json())

    def wait(self, **wanted: Any) -> dict[str, Any]:
        """Wait until what is told has some values."""
        wait_until(lambda: wanted.items() <= self.status().items())
        return self.status()


@pytest.fixture
def game(own_modules: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that plays a world from a folder of the user's."""
    monkeypatch.chdir(own_modules)
    (own_modules / "mine.py").write_text(WORLD)
    # others play at the same time, too
    (own_modules / "played").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own_modules / "played"))

    @contextmanager
    def played(**given: Any) -> Iterator[Game]:
        playing = Playing({"world": "mine.py:Faulty", "agents": 20, "rounds": 6, **given})
        watching = Watching(Viewer(playing))
        watching.start()
        try:
            with Visitor(watching) as client:
                found = Game(playing, client)
                found.wait(state="paused")
                yield found
        finally:
            watching.stop()

    return played


def test_a_played_run_is_kept_resumed_and_replayed(game: Any, tmp_path: Path) -> None:
    """It is seen while it is played, and its copy is a run like any other."""
    with game(seed=5) as found:
        mode = found.status()["about"]["parameters"][-1]
        assert (mode["name"], mode["type"], mode["least"], mode["most"]) == ("mode", "int", 0, 3)
        found.do("round")
        found.wait(round=1, tick=2, state="paused")
        found.do("tick")
        found.wait(round=2, tick=1, state="paused")
        # what is ordered within a round waits for its end
        assert found.do("treat", name="warning") == {}
        found.do("set", parameters={"tiring": "0.8"})
        found.do("play")
        told = found.wait(state="complete")
        words = "--agents 20 --rounds 6 --seed 5 --treat warning@3 --treat tiring=0.8@3"
        assert words in told["command"]
        # the log is read by a thread of its own
        wait_until(lambda: found.client.ask("/head")["rounds"] == 6)
        assert {"the-world", "the-chart"} <= {*found.client.html("/round", round=3)}
        assert found.do("keep", folder="runs/kept") == {"kept": "runs/kept"}
        assert "exists" in found.do("keep", folder="runs/kept")["problem"]
        found.do("start", agents=10, seed=6, parameters={"friends": "4"})
        told = found.wait(state="paused", number=2)
        assert "--agents 10 --rounds 6 --seed 6 --set friends=4" in told["command"]

        found.do("round")
        found.wait(round=1, tick=2, state="paused")
        found.do("keep", folder="runs/part")
        assert found.client.ask("/head")["label"] == "play 2"

    replay("runs/kept", "runs/again")
    logs = [Path("runs", name, "events.jsonl").read_bytes() for name in ("kept", "again")]
    assert logs[0] == logs[1]
    config = orjson.loads(Path("runs/kept/run.json").read_bytes())["config"]
    assert config["treatments"] == ["warning@3", "tiring=0.8@3"]
    assert resume("runs/part") is not None


@pytest.mark.parametrize(
    ("mode", "words"), [(1, "ValueError: oh dear"), (3, "ended by itself, with status 9")]
)
def test_a_fault_of_the_world_is_reported_with_its_line_and_the_next_run_is_whole(
    game: Any, mode: int, words: str
) -> None:
    """Neither an exception nor a process that dies takes the page with it."""
    with game(parameters={"mode": str(mode)}) as found:
        found.do("play")
        told = found.wait(state="failed")
        assert words in told["fault"]["text"]
        if mode == 1:
            assert told["fault"]["notes"][0].startswith("mine.py:")
            assert 'raise ValueError("oh dear")' in told["fault"]["notes"][0]
        assert "has ended" in found.do("round")["problem"]
        found.do("start", parameters={})
        found.wait(state="paused", number=2)


def test_a_world_that_does_not_end_is_stopped(game: Any, tmp_path: Path) -> None:
    """A loop without an end is ended with its process, of which nothing is left."""
    with game(parameters={"mode": "2"}) as found:
        found.do("play")
        sleep(0.5)
        found.do("stop")
        told = found.wait(state="stopped")
        assert "was stopped" in told["fault"]["text"]
    assert list((tmp_path / "played").iterdir()) == []


def test_what_is_wrong_is_refused(game: Any) -> None:
    """Orders, parameters and folders that there are not are errors in words."""
    with game() as found:
        for what, more, words in (
            ("jump", {}, "there is no action 'jump'"),
            ("treat", {}, "needs name"),
            ("start", {"seed": "x"}, "whole number"),
            ("keep", {"folder": "/tmp/elsewhere"}, "must be below"),
            ("keep", {"folder": "../elsewhere"}, "must be below"),
        ):
            assert words in found.do(what, **more)["problem"]
        for what, more, words in (
            ("treat", {"name": "nothing"}, "no treatment 'nothing'"),
            ("set", {"parameters": {"tiring": "much"}}, "tiring: Input should be a valid number"),
        ):
            found.do(what, **more)
            wait_until(lambda words=words: words in str(found.status().get("refused")))
        # which a form of another page could send
        plain = {"content": b'{"do": "stop"}', "headers": {"Content-Type": "text/plain"}}
        assert found.client.post("/do", **plain).status_code == 400
        foreign = found.client.post(
            "/do", json={"do": "stop"}, headers={"Origin": "http://evil.example"}
        )
        assert foreign.status_code == 403
        assert found.status()["state"] == "paused"


@pytest.mark.parametrize("step", ["round", "tick"])
def test_the_first_step_asks_the_model_and_goes_on(
    game: Any, fake_ollama: FakeOllama, step: str
) -> None:
    """What it will ask is estimated first; the order that consents to that is carried out, too."""
    with game(world="vaccination", model=f"ollama:llama3.2@{fake_ollama.url}") as found:
        assert found.status()["estimate"]["models"]["llama3.2"]["calls"] > 0
        assert fake_ollama.asked == 0
        found.do(step)
        wait_until(lambda: found.status()["state"] == "paused" and found.status()["tick"] > 0)
        assert fake_ollama.asked > 0
