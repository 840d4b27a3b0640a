"""The worlds that prism ships: short, explained, and as their sources say they are."""

from pathlib import Path
from typing import Any

import pytest

import prism
from prism import Model, Run, examples
from prism.examples import Council, Haggle, Lake, Market, Schelling
from prism.testing import FakeOllama, ScriptedWriter
from tests.kit.models import Filler
from tests.kit.worlds import SHIPPED, run_logged

FOLDER = Path(examples.__file__).parent
DOCS = Path(prism.__file__).parents[1] / "docs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
MOST_LINES = 60

THOUGHT = "<agent><next_state>executing</next_state><thinking_log>I know.</thinking_log></agent>"
NOTE = "<agent><action><type>{}</type>{}</action></agent>"


def council_script(call: Any) -> str:
    """Think in one cycle and post something in the next; one member notes for itself."""
    if ":thinking" in call.key:
        return THOUGHT
    if call.agent_id == "member_3":
        return NOTE.format("working_memory_add", "<tags>secret</tags><value>No.</value>")

    return NOTE.format("post", "<text>Yes.</text>")


def test_ten_worlds_ship() -> None:
    """Every module of the examples has one world, which the package offers."""
    assert sorted(cls.__module__.rpartition(".")[2] for cls in SHIPPED) == NAMES
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_a_world_is_short_and_in_the_gallery_with_all_of_its_source(name: str) -> None:
    """It fits on a page; its section shows what came of it, and the whole source."""
    assert len((FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in gallery.split("\n## ")[1:])
    section = sections[name.capitalize()]
    assert f"/prism/examples/{name}.py\n```" in section
    assert "![" in section


def test_buyers_pay_what_sellers_take(tmp_path: Path) -> None:
    """Nobody sells below cost, nobody pays more than a good is worth, and goods are counted."""
    done = run_logged(tmp_path, Market(), 100, seed=3, rounds=20)
    agents = {each.agent_id: each for each in done.run.agents}
    sold = done.events("world.sold")
    assert len(sold) == 3 * 20
    for each in sold:
        assert agents[each["agent_id"]].cost <= each["price"] <= agents[each["buyer"]].worth


def test_who_haggles_agrees_with_the_other_or_neither_does(tmp_path: Path) -> None:
    """Both of a pair end in one state, on a price within both limits; their messages are logged."""
    done = run_logged(tmp_path, Haggle(), 40, seed=2)
    people = {each.agent_id: each for each in done.run.agents}
    assert all(each.neighbours[0].state is each.state for each in people.values())
    agreed = [each for each in done.events("reasoner.decision") if each["chosen"] == "agreed"]
    assert len(agreed) >= 4
    for each in agreed:
        agent, price = people[each["agent_id"]], each["context"]["price"]
        kind = type(agent).__name__
        assert price <= agent.limit if kind == "Buyer" else price >= agent.limit
    assert done.events("message.sent")[0]["content"]["words"].endswith(", please.")


def test_everybody_has_a_house_of_his_own() -> None:
    """After every round all residents are in the town, each in one cell."""
    run = Run(Schelling(width=8), 50, seed=2, rounds=4)
    run.run()
    town = run.world.town
    assert len({*town.cells.values()}) == len(town.cells) == 50
    assert all(town.at(cell) == (resident,) for resident, cell in town.cells.items())


@pytest.mark.slow
def test_fishers_who_never_rest_empty_the_lake() -> None:
    """The stock ends near the level below which fishers rest, and at nothing without one."""
    left = {
        level: Run(Lake(rest_below=level), 6, seed=1).run().series("left")[-1]
        for level in (0.0, 0.4)
    }
    assert left[0.0] is not None
    assert left[0.4] is not None
    assert left[0.0] < 0.02
    assert 0.3 < left[0.4] < 0.55


def test_members_find_what_others_have_posted(tmp_path: Path) -> None:
    """An agent acts in one round, and what it posts is news to everybody in the next prompts."""
    writer = ScriptedWriter(council_script)
    done = run_logged(tmp_path, Council(), 3, rounds=3, writer=writer)
    board = done.run.world.board
    assert [sorted(board[at : at + 2]) for at in (0, 2, 4)] == [
        ["member_1: Yes.", "member_2: Yes."]
    ] * 3
    prompts = [call.prompt for call in writer.calls]
    assert ["<new>member_2: Yes.</new>" in each for each in prompts] == [False] * 6 + [True] * 12
    posted = [(event["agent_id"], event["type"]) for event in done.events("cognition.action")]
    assert posted.count(("member_1", "post")) == posted.count(("member_2", "post")) == 3
    assert posted.count(("member_3", "working_memory_add")) == 3


class Narrow(ScriptedWriter):
    """A writer whose server has a small window."""

    async def window(self) -> int:
        return 2048


def test_members_know_the_window_of_their_server(tmp_path: Path) -> None:
    """As alone, each lowers its limits to what the server has, before its first cycle."""
    done = run_logged(tmp_path, Council(), 3, rounds=1, writer=Narrow(council_script))
    found = done.events("cognition.window")
    assert {each["agent_id"] for each in found} == {"member_1", "member_2", "member_3"}
    assert all(each["hard_limit"] < each["window"] == 2048 for each in found)


def test_members_post_if_their_model_only_reads_its_prompt(tmp_path: Path) -> None:
    """A model that does as its prompt shows thinks, then posts, in every round."""
    with FakeOllama(write=Filler()) as server:
        writer = Model("llama3.2", hosts=[server.url])
        done = run_logged(tmp_path, Council(), 3, rounds=2, writer=writer)
    assert done.run.world.posted() == 6
