"""A world that is played in this process: what it tells, and what it follows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import orjson
import pytest

from prism import replay
from prism.errors import InputError
from prism.statechart.outline import to_outline
from prism.watch._player import Player, about, command
from prism.watch._playing import DIAGRAMS
from prism.worlds import Run, World, param
from tests.kit.lamps import Lamp
from tests.kit.waiting import wait_until

Told = list[dict[str, Any]]
Share = float


class Lit(World[Lamp]):
    """A world with a parameter of each kind."""

    bright: Share = param(0.5, "how bright", least=0, most=1)
    number: int = 3
    is_warm: bool = True
    name: str = "street"
    light: Literal["lamp", "moon"] = "lamp"


@contextmanager
def played(folder: Path, **asked: Any) -> Iterator[tuple[Player, Told]]:
    """Play the rumour in a thread, from its first order on, until it is complete."""
    told: Told = []
    player = Player({"world": "rumour", "agents": 20, "rounds": 6, **asked}, folder, told.append)
    thread = Thread(target=player.play)
    thread.start()
    try:
        yield player, told
    finally:
        player.order({"do": "play"})
        thread.join()


def paused_at(told: Told, number: int, tick: int) -> Callable[[], bool]:
    """Return whether the last word is that the world waits at a round and tick."""
    wanted = {"state": "paused", "round": number, "tick": tick}
    return lambda: next((each for each in reversed(told) if "round" in each), {}) == wanted


def test_treatments_and_parameters_hold_from_the_next_round_and_the_run_is_replayed(
    tmp_path: Path,
) -> None:
    """What was done by hand stands in run.json, so that the run is made again from it."""
    with played(tmp_path / "run", seed=3) as (player, told):
        player.order({"do": "round"})
        wait_until(paused_at(told, 1, 1))
        player.order({"do": "treat", "name": "warning"})
        player.order({"do": "set", "parameters": {"tiring": "0.8"}})
        player.order({"do": "set", "parameters": {"tiring": "much"}})
        wait_until(lambda: any(each.get("refused") for each in told))

    assert told[-1] == {"state": "complete"}
    assert [each["refused"] for each in told if each.get("refused")] == [
        "Rumour.tiring: Input should be a valid number, got 'much'"
    ]
    config = orjson.loads((tmp_path / "run" / "run.json").read_bytes())["config"]
    assert config["treatments"] == [
        "warning@2",
        "tiring=0.8@2",
    ]
    replay(tmp_path / "run", tmp_path / "again")
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("run", "again")]
    assert logs[0] == logs[1]


def test_parameters_have_types_bounds_and_values() -> None:
    """A form is made of what the world declares and of what was given."""
    told = about(Run("tests.watch.test_player:Lit", 3, parameters={"number": 4}))
    kinds = {each["name"]: each.get("options", each["type"]) for each in told["parameters"]}
    assert kinds == {
        "bright": "float",
        "number": "int",
        "is_warm": "bool",
        "name": "str",
        "light": ["lamp", "moon"],
    }
    first = told["parameters"][0]
    assert (first["least"], first["most"], first["default"], first["help"]) == (
        *(0, 1, 0.5),
        "how bright",
    )
    assert told["values"]["number"] == 4
    charts = orjson.loads(orjson.dumps(told["charts"], default=sorted))
    assert DIAGRAMS.validate_python(charts) == (to_outline(Lamp.chart.definition),)


def test_the_command_makes_the_same_run() -> None:
    """Parameters, treatments and seed are written as the command line takes them."""
    asked = {"world": "rumour", "agents": 30, "parameters": {"friends": "8"}}
    run = Run("rumour", 30, seed=4, treatments=["warning@3", "tiring=0.1@5"])
    assert command(run, asked) == (
        "prism run rumour --agents 30 --seed 4 --set friends=8 --treat warning@3 "
        "--treat tiring=0.1@5 --out runs/rumour"
    )


def test_a_world_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A name of nothing is an error with the names that there are."""
    with pytest.raises(InputError, match="one of"):
        Player({"world": "rumuor"}, tmp_path / "run", print)
