"""``prism world`` as a user runs it."""

import json

import pytest

from prism.examples import Market
from tests.kit.commands import Prism

pytestmark = pytest.mark.usefixtures("own_modules")

BROKEN = """
from prism import measure
from prism.examples import Rumour


class Broken(Rumour):
    @measure
    def first(self) -> float:
        return "abcdefgh".index(next(iter({*"abcdefgh"})))
"""


def test_shipped_worlds_are_listed(prism: Prism) -> None:
    """Each shipped world has a line with its short name and what it is."""
    ran = prism("world", "list", "--json")
    assert (ran.status, ran.err) == (0, "")
    names = [each["name"] for each in ran.rows]
    assert {"market", "rumour", "schelling", "vaccination"} <= set(names)
    shown = prism("world", "list").out
    for each in ran.rows:
        assert each["name"] in shown
    addresses = {each["name"]: each["address"] for each in ran.rows}
    assert addresses["market"] == "prism.examples.market:Market"


def test_a_world_is_shown(prism: Prism) -> None:
    """Docstring, parameters, kinds with their states, treatments and measures are shown."""
    ran = prism("world", "show", "schelling")
    assert (ran.status, ran.err) == (0, "")
    shown = " ".join(ran.out.split())
    for text in (
        "Schelling (prism.examples.schelling:Schelling)",
        "30 rounds of 1 tick",
        "width int 12 3 houses in a row, and rows",
        "Resident stays, moves",
        "segregation Return the mean share of neighbours of the same group.",
    ):
        assert text in shown
    assert "Make people tire of the rumour soon." in prism("world", "show", "rumour").out


def test_a_world_is_shown_as_data(prism: Prism) -> None:
    """``--json`` has all of it for programs."""
    about: dict[str, object] = prism("world", "show", "market", "--json").rows  # type: ignore[assignment]
    assert about["world"] == "Market"
    assert about["parameters"] == [{"name": "raised", "type": "float", "default": 1.3, "help": ""}]
    buyer, seller = about["kinds"]  # type: ignore[misc]
    assert (buyer["kind"], seller["states"]) == ("Buyer", "selling, sold_out")
    assert about["doc"] == Market.__doc__
    shown = json.loads(prism("world", "show", "feed", "--json").out)["parameters"]
    assert ["always", "diurnal"] in [each.get("options") for each in shown]


@pytest.mark.slow
def test_a_good_world_is_checked_without_findings(prism: Prism) -> None:
    """Exit status 0 says that nothing was found."""
    ran = prism("world", "check", "rumour", "--agents", 12, "--rounds", 2, "--set", "friends=4")
    assert (ran.status, ran.out) == (0, "")
    assert "the same run with another hash seed and order of agents" in ran.err


CHECK_BROKEN = ("world", "check", "own_broken.py:Broken", "--agents", 8, "--rounds", 1)


def test_findings_are_lines_with_status_1(prism: Prism) -> None:
    """What differs is printed, and where it is drawn from."""
    (prism.folder / "own_broken.py").write_text(BROKEN)
    ran = prism(*CHECK_BROKEN)
    assert ran.status == 1
    assert ran.out.startswith("with another hash seed, line ")
    assert "draw by agent.random or self.random, and sort sets before you loop over them" in ran.out


@pytest.mark.slow
def test_findings_are_data_where_they_are_asked_for(prism: Prism) -> None:
    """``--json`` has the cause and the lines that differ."""
    (prism.folder / "own_broken.py").write_text(BROKEN)
    (finding,) = prism(*CHECK_BROKEN, "--json").rows
    assert finding["cause"] == "hash seed"
    assert '"first":' in finding["first"]


SPINNING = """
from enum import StrEnum

from prism import Agent, Statechart, Transition, World, during

Top, Baby = StrEnum("Top", ["SPINS", "LIES"]), StrEnum("Baby", ["YOUNG"])


class Spinner(Agent):
    chart = Statechart(
        Top,
        [
            Transition("spin", Top.SPINS, Top.SPINS),
            Transition("asks", Top.SPINS, Top.SPINS),
            Transition("asks", Top.SPINS, Top.LIES),
            Transition("asks", Top.LIES, Top.LIES),
        ],
        initial=Top.SPINS,
        decision_states=[Top.SPINS],
    )


class Child(Agent):
    chart = Statechart(Baby, [], initial=Baby.YOUNG)


class Spinning(World[Spinner | Child]):
    rounds = 3

    def populate(self, agents):
        return [Spinner(), Spinner()]

    def setup(self):
        print(self.agents[0].neighbours)

    @during(Top.SPINS)
    async def go(self, spinner):
        spinner.fire("spin")
        spinner.stat = 1
        await spinner.decide("asks", weights={Top.SPINS: 1})
        self.add(Child())
"""


def test_what_happens_without_a_line_is_not_called_silent(prism: Prism) -> None:
    """Self-transitions were fired and decided, and newcomers are in their first states.

    What is silent otherwise is noted, such as neighbours in no network. A world may print.
    """
    (prism.folder / "own_spinning.py").write_text(SPINNING)
    ran = prism("world", "check", "own_spinning.py:Spinning")
    assert (ran.status, ran.out) == (0, "")
    assert "nobody was ever in 'lies'" in ran.err
    assert "Spinner reads its neighbours, but the world has no network" in ran.err
    assert "'stat' is assigned in line 39 of own_spinning.py, and never read there" in ran.err
    assert [each for each in ("'young'", "'spin'", "'asks'", "has made") if each in ran.err] == []
    ran = prism("run", "own_spinning.py:Spinning", "--agents", 30)
    assert "the world has made 2 agents, though --agents asks for 30" in ran.err
    assert "(8 agents at the end)" in ran.out


@pytest.mark.slow
def test_a_check_of_a_world_that_fails_says_why_and_where(prism: Prism) -> None:
    """The message has the exception and the line of the world's own code."""
    failing = SPINNING.replace("print(self.agents[0].neighbours)", "1 / 0")
    (prism.folder / "own_failing.py").write_text(failing)
    ran = prism("world", "check", "own_failing.py:Spinning")
    assert "ZeroDivisionError: division by zero; own_failing.py:34, in Spinning.setup" in ran.err


def test_wrong_input_is_refused(prism: Prism) -> None:
    """No such world, parameter or value: one line, and status 2."""
    for line, problem in (
        (("show", "nobody"), "WORLD must be package.module:Name, file.py:Name or the name of"),
        (("show", "rumor"), "got 'rumor'; did you mean 'rumour'?\n"),
        (("show", "nothing:X"), "WORLD cannot be imported: ModuleNotFoundError: No module"),
        (("check", "rumour", "--set", "tirng=1"), "--set: Rumour has no parameter 'tirng'"),
        (("check", "feed", "--set", "prset=x"), "mean 'preset'? (prism world show lists all)\n"),
        (("check", "rumour", "--agents", "0"), "--agents must be a whole number from 1 to "),
        (("check", "rumour", "--treat", "x"), "--treat must have its round, from 1 on: write x@12"),
        (("check", "rumour", "--treat", "x@1"), "WORLD cannot be run: Rumour has no treatment 'x'"),
    ):
        ran = prism("world", *line)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith(f"prism: {problem}") or ran.err.endswith(problem)


def test_a_world_to_begin_from_runs_and_is_sound(prism: Prism) -> None:
    """``init`` writes a file that runs, and overwrites nothing."""
    ran = prism("world", "init", "Party")
    assert (ran.status, ran.out.rpartition(": ")[2]) == (0, "prism run party.py:Party\n")
    assert len((prism.folder / "party.py").read_text().splitlines()) <= 35
    assert prism("run", "party.py:Party", "--agents", 20).status == 0
    assert "would be overwritten" in prism("world", "init", "Party").err
    assert prism("world", "init", "a-b").status == 2
