"""What the page is told of a world before it is played."""

from typing import Literal

import orjson

from prism.statechart.outline import to_outline
from prism.watch._player import about
from prism.watch._playing import DIAGRAMS
from prism.worlds import Run, World, param
from tests.kit.lamps import Lamp

Share = float


class Lit(World[Lamp]):
    """A world with a parameter of each kind."""

    bright: Share = param(0.5, "how bright", least=0, most=1)
    number: int = 3
    is_warm: bool = True
    name: str = "street"
    light: Literal["lamp", "moon"] = "lamp"


def test_parameters_have_types_bounds_and_values() -> None:
    """A form is made of what the world declares and of what was given."""
    told = about(Run("tests.watch.test_player:Lit", 3, parameters={"number": 4}))
    kinds = {each["name"]: each.get("options", each["type"]) for each in told["parameters"]}
    assert kinds == {
        **{"bright": "float", "number": "int", "is_warm": "bool", "name": "str"},
        "light": ["lamp", "moon"],
    }
    bright = {"least": 0, "most": 1, "default": 0.5, "help": "how bright"}
    assert told["parameters"][0].items() >= bright.items()
    assert told["values"]["number"] == 4
    charts = orjson.loads(orjson.dumps(told["charts"], default=sorted))
    assert DIAGRAMS.validate_python(charts) == (to_outline(Lamp.chart.definition),)
