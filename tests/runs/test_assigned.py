"""Models that are assigned to some of a run's agents."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.llm import Model
from prism.llm._addresses import with_credentials
from prism.llm._assignments import ModelAssignment
from prism.runs._assigned import ALL_OTHERS, Assigned
from prism.runs._config import check_config, read_reasoner
from prism.statechart import Statechart, Transition

Light = StrEnum("Light", ["OFF", "ON"])


class Lamp:
    """An agent with a chart of its own."""

    chart = Statechart(Light, [Transition("turns", Light.OFF, Light.ON)], Light.OFF, name="lamps")

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id


def assigned(*names: str) -> tuple[ModelAssignment, ...]:
    """Return assignments such as ``kind Lamp`` of models that are called alike."""
    pairs: list[Any] = [name.split(" ") for name in names]
    return tuple(ModelAssignment(by, name, model=f"{by}-{name}") for by, name in pairs)


def test_what_is_for_nobody_is_refused() -> None:
    """A name that no agent has may be misspelt; an archetype that nobody has is only told of."""
    told: list[str] = []
    choose = Assigned(assigned("archetype superuser", "kind Lamb"), None, told.append)
    with pytest.raises(InputError, match=r"field 'kind.Lamb': matches no agent of this run"):
        choose.check({ALL_OTHERS: 5})
    choose.check({"kind Lamb": 1})
    assert told == ["field 'archetype.superuser': no agent in this run has this archetype"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"assigned": assigned("kind A", "kind A")}, "field 'kind.A': is assigned twice"),
        (
            {"assigned": (ModelAssignment("kind", "A", server="openai"),)},
            "field 'kind.A.hosts': must name an OpenAI-compatible server",
        ),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    """Options say at once what is assigned twice, or cannot be asked."""
    with pytest.raises(InputError, match=message):
        Model("tiny", **options)
    with pytest.raises(InputError, match="field 'by': must be one of agent, archetype, kind"):
        ModelAssignment("colour", "red")  # type: ignore[arg-type]


def test_options_are_read_as_they_were_kept() -> None:
    """Models by agent stand in run.json, hosts without passwords, and are read from there."""
    secret, starred = "http://ann:s3cret@two:8000", "http://***@two:8000"
    options = Model(
        "tiny",
        hosts=("http://one",),
        temperature=0.5,
        assigned=(ModelAssignment("kind", "Lamp", hosts=(secret,), server="openai"),),
        models_file=("models.toml", "0f" * 32),
    )
    config = options.to_config()
    assert config["models"] == {
        "assigned": [{"by": "kind", "name": "Lamp", "host": [starred], "server": "openai"}],
        "file": "models.toml",
        "sha256": "0f" * 32,
    }
    path = Path("run.json")
    check_config(config, path, {"reasoner": str})
    with pytest.raises(InputError, match="are not kept: give them with --host"):
        with_credentials(config, [], path)
    assert read_reasoner(with_credentials(config, [f"{secret}/v1"], path)) == Model(
        "tiny",
        hosts=("http://one",),
        temperature=0.5,
        assigned=(ModelAssignment("kind", "Lamp", hosts=(f"{secret}/v1",), server="openai"),),
        models_file=("models.toml", "0f" * 32),
    )
    with pytest.raises(InputError, match="field 'models': cannot be"):
        read_reasoner({**config, "models": {"assigned": [{"for": "Lamp"}]}})
