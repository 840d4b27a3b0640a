"""``prism status`` as a user runs it."""

import gzip
import json
import re
import signal

import pytest

from prism.runs import RunStatus
from prism.testing import Asked, FakeOllama
from tests.kit.commands import Prism
from tests.kit.servers import hanging_after
from tests.kit.waiting import has_ended, wait_until

RUN = ("simulate", "--agents", 20, "--rounds", 3, "--seed", 1)
STOPPED = re.compile(r"run +stopped +(\d) of 3 +(\d+) of 12 ")


ENDS = """
from enum import StrEnum
from prism.worlds import Agent, World
from prism.statechart import Statechart, Transition

Mood = StrEnum("Mood", ["CALM"])

class Calm(Agent):
    chart = Statechart(Mood, [Transition("stays", Mood.CALM, Mood.CALM)], Mood.CALM)

class Short(World[Calm]):
    def round_ends(self):
        if self.round == 2:
            self.stop()
"""


def test_a_run_that_ended_itself_says_in_which_round(prism: Prism) -> None:
    """A world that stopped before its last round is complete, and not as long as was asked."""
    (prism.folder / "short.py").write_text(ENDS)
    run = ("short.py:Short", "--agents", 2, "--rounds", 5, "--out", "run")
    assert prism("run", *run).status == 0
    assert "complete  2 of 5" in prism("status", "run").out


@pytest.mark.slow
def test_an_interrupted_run_says_where_it_stopped(prism: Prism) -> None:
    """While it waits it is alive; then its log says where it was, and its journal what it spent."""

    def choose(asked: Asked) -> str:
        return asked.options[-1]

    with FakeOllama(models=["tiny"], choose=choose, latency=hanging_after(3)) as server:  # noqa: SIM117
        with prism.start(*RUN, "--model", f"ollama:tiny@{server.url}", "--out", "run") as process:
            wait_until(lambda: server.asked > 3 or has_ended(process))
            alive = prism("status", "run").out
            process.send_signal(signal.SIGINT)

    said = prism("status", "run").out
    (place,) = STOPPED.findall(said)
    assert re.findall(r"run +running +(\d) of 3 +(\d+) of 12 ", alive) == [place]
    assert said.endswith("\ncontinue with: prism resume run\n")
    lost = r"\d+ without an answer, tokens unknown"
    assert re.search(rf"spent: \d+ calls \({lost}\), [\d,]+ tokens", said)


@pytest.mark.slow
def test_runs_below_a_folder_are_listed(prism: Prism) -> None:
    """Without a run the runs below are listed, each in a line, a damaged one among them."""
    for name in ("a/one", "two"):
        assert prism(*RUN, "--out", name).status == 0
    (prism.folder / "bad").mkdir()
    (prism.folder / "bad" / "run.json").write_bytes(b"{")
    (prism.folder / "cut").mkdir()
    (prism.folder / "cut" / "events.jsonl.gz").write_bytes(b"\x1f\x8b")
    said = prism("status")
    assert (said.status, said.err) == (0, "")
    rows = [line.split() for line in said.out.splitlines() if line.strip()][2:]
    assert [name for name, *_ in rows] == ["a/one", "bad", "cut", "two"]
    assert rows[0][1:] == rows[3][1:] == ["complete", *("3", "of", "3"), *("12", "of", "12")]
    assert rows[1][1:] == rows[2][1:] == ["damaged"]
    assert prism("status", ".").out == said.out

    listed = prism("status", "--json").rows
    assert [each["state"] for each in listed] == ["complete", "damaged", "damaged", "complete"]
    assert set(listed[0]) == set(RunStatus.__dataclass_fields__)
    assert json.loads(prism("status", "two", "--json").out) == listed[3:]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), ".: is not a run, and holds none"),
        (("empty",), "empty: is not a run, and holds none"),
        (("nowhere",), "nowhere: there is no such file or folder"),
        (("note.yaml",), "note.yaml: is no log of a run: give its folder or its log"),
        (("note.gz",), "note.gz: is no log of a run: give its folder or its log"),
    ],
)
def test_no_run_is_one_line(given: tuple[str, ...], said: str, prism: Prism) -> None:
    """Where there is no run one line says so, with status 2."""
    (prism.folder / "empty").mkdir()
    (prism.folder / "note.yaml").write_bytes(b"name: desk")
    (prism.folder / "note.gz").write_bytes(gzip.compress(b"name: desk"))
    ended = prism("status", *given)
    assert (ended.status, ended.out, ended.err) == (2, "", f"prism: {said}\n")
