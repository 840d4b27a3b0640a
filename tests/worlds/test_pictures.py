"""What a log is told of where agents are, and how they are drawn."""

from pathlib import Path
from typing import Any

from tests.kit.pictured import Chain, Looked, Sky, Street
from tests.kit.worlds import run_logged


def pictures(folder: Path, world: Any, agents: int = 6) -> list[dict[str, Any]]:
    """Return the events of a run that picture its agents."""
    return run_logged(folder, world, agents).events("agents.pictured")


def test_a_picture_comes_before_the_first_round_and_at_the_end_of_each(tmp_path: Path) -> None:
    """The first one names the agents; each has the states of its round."""
    found = pictures(tmp_path, Street())
    assert [each["round"] for each in found] == [0, 1, 2, 3]
    assert found[0]["agent_ids"] == [f"lamp_{number}" for number in range(1, 7)]
    assert "agents" not in found[1]
    on = [[found[at]["state_names"][state] for state in found[at]["agent_states"]] for at in (0, 1)]
    assert on[0] == ["off"] * 6
    assert "on" in on[1]


def test_cells_and_positions_are_those_of_the_agents(tmp_path: Path) -> None:
    """An agent that is nowhere has no place."""
    street, sky = (pictures(tmp_path, world)[-1] for world in (Street(), Sky()))
    assert (street["space"], street["width"], street["height"]) == ("grid", 3, 3)
    assert street["places"] == [0, 1, 2, 3, 4, None]
    assert sky["space"] == "plane"
    assert sky["places"][:2] == [[0, 0.5], [0.1, 0.5]]


def test_connections_are_logged_again_once_they_change(tmp_path: Path) -> None:
    """A network that stays as it is costs its edges once."""
    found = [each.get("edges") for each in pictures(tmp_path, Chain())]
    assert found[1] is None
    assert [0, 2] not in found[0]
    assert [0, 2] in found[2]
    assert found[3] is None


def test_a_picture_gives_colours(tmp_path: Path) -> None:
    """What the method returns is told; agents need no space for it."""
    last = pictures(tmp_path, Looked())[-1]
    assert last["colours"] == ["#cc0000", *["others"] * 5]
