"""What somebody sees of a world of their own: states in order, reasons, whole names."""

import shutil
from pathlib import Path

import pytest

from tests.kit.commands import Prism

WORLD = '''
from enum import StrEnum

from prism import Agent, Statechart, Transition, World, during, measure

Act = StrEnum("Act", ["WAITING", "COOPERATING", "DEFECTING"])
MOVES = [("plays", Act.WAITING, Act.COOPERATING), ("plays", Act.WAITING, Act.DEFECTING),
         ("rests", Act.COOPERATING, Act.WAITING), ("rests", Act.DEFECTING, Act.WAITING)]


class Player(Agent):
    """Somebody who plays."""

    chart = Statechart(
        Act, [Transition(*each) for each in MOVES], Act.WAITING, decision_states=[Act.WAITING],
        timeouts={},
    )


class Game(World[Player]):
    """A game."""

    rounds = 12

    @during(Act.WAITING)
    async def play(self, player):
        await player.decide("plays")

    @during(Act.COOPERATING, Act.DEFECTING)
    def rest(self, player):
        player.fire("rests")

    @measure
    def cooperation_among_all_players(self) -> float:
        """Return the share of those who cooperate."""
        return self.share(Act.COOPERATING)
'''


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> tuple[Prism, str]:
    """Return the command line in a folder with a run of the world, and what the run printed."""
    folder = tmp_path_factory.mktemp("game")
    (folder / "own_game.py").write_text(WORLD, encoding="utf-8")
    prism = Prism(folder)
    return prism, prism("run", "own_game.py", "--agents", "20", "--out", "run").out


@pytest.mark.slow
def test_headings_name_runs_without_their_folders(game: tuple[Prism, str], tmp_path: Path) -> None:
    """Runs are told apart by the parts of their paths that differ, never by whole paths."""
    ran = game[0].folder / "run"
    deep = tmp_path / "a long way" / "down"
    for name in ("first", "second"):
        shutil.copytree(ran, deep / "plain" / name)
        shutil.copytree(ran, deep / "told" / name)

    lines = game[0]("log", "states", deep / "plain/first", deep / "told/second").out.splitlines()
    assert {line.split()[0] for line in lines if "waiting" in line} == {"first", "second"}
    out = game[0]("log", "states", deep / "plain/first", deep / "told/first").out
    names = {line.split()[0] for line in out.splitlines() if "waiting" in line}
    assert names == {"plain/first", "told/first"}
    said = game[0]("compare", deep / "plain", deep / "told", "--measure", "transitions")
    assert "told (2 runs) against plain (2 runs), " in said.out
    assert str(tmp_path) not in said.out


@pytest.mark.slow
def test_a_report_of_an_own_world_has_no_words_of_the_feed(
    game: tuple[Prism, str], tmp_path: Path
) -> None:
    """Nobody is sent to idle, likes or reshares in a world without posts."""
    import re

    page = tmp_path / "page.html"
    assert game[0]("report", "run", "-o", page).status == 0
    body = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.S)
    assert not re.search(rf"<(h[1-6]|title)[^>]*>[^<]*{game[0].folder}", body)
    words = re.sub(r"<[^>]+>", " ", body).lower()
    assert "cooperation_among_all_players" in words
    assert not re.findall(
        r"\b(idle|cascades?|likes?|liked|reshares?|posts?|repl(?:y|ies))\b", words
    )


def test_a_world_that_ends_its_run_says_when_and_why(prism: Prism) -> None:
    """The summary names the round, and ``until`` or the reason that the world gave."""
    ended = """
    def tick_ends(self):
        if self.round == 3:
            self.stop("bored")
"""
    (prism.folder / "bored.py").write_text(WORLD + ended, encoding="utf-8")
    said = prism("run", "bored.py", "--agents", "5").out
    assert "The world ended the run in round 3 (bored)." in said

    held = "    def until(self):\n        return self.round == 2\n"
    (prism.folder / "short.py").write_text(WORLD + held, encoding="utf-8")
    assert "in round 2 (until)." in prism("run", "short.py", "--agents", "5").out


def test_a_fault_in_a_guard_is_told_once_without_a_log(tmp_path: Path) -> None:
    """A run that is not kept has no log to tell of it, and would end as if nothing were wrong."""
    guarded = WORLD.replace("*each)", "*each, guard=hesitates)").replace(
        "MOVES =", "def hesitates(player, context):\n    return player.courage[0]\n\n\nMOVES ="
    )
    (tmp_path / "own_guard.py").write_text(guarded, encoding="utf-8")
    ended = Prism(tmp_path)("run", "own_guard.py", "--agents", "5", "--rounds", "2")
    assert ended.err.count("own_guard.py:8, in hesitates: AttributeError: ") == 1
    assert "(statechart.guard_failed; told once" in ended.err
