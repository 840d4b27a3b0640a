"""What a plan says, what is refused in one, and the runs that it makes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.science import Plan
from prism.social import Feed

PLAN = """\
name = "herding"
world = "rumour"
agents = 60
rounds = 3
seeds = [3, 5]

[parameters]
rewired = 0.2

[vary]
friends = [4, 8]

[[arm]]
name = "control"

[[arm]]
name = "warned"
rounds = 4
parameters = {tiring = 0.5}
treatments = ["warning@2"]
"""


def written(folder: Path, text: str) -> Path:
    """Write a plan into a folder."""
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_every_combination_of_values_is_a_configuration_of_every_arm(tmp_path: Path) -> None:
    """Values are combined in the plan's order; an arm adds its own, and goes before the plan."""
    plan = Plan.from_file(written(tmp_path, PLAN))
    found = plan.configurations()

    assert [each.name for each in found] == [
        *("control,friends=4", "control,friends=8"),
        *("warned,friends=4", "warned,friends=8"),
    ]
    assert plan.seeds == (3, 5)
    assert found[1].parameters == {"rewired": 0.2, "friends": 8}
    assert (
        plan.options(found[3], 5).to_config()
        == Run(
            "rumour",
            60,
            rounds=4,
            seed=5,
            parameters={"rewired": 0.2, "friends": 8, "tiring": 0.5},
            treatments=("warning@2",),
        ).to_config()
    )


def test_treatments_of_an_arm_are_added_to_those_of_the_plan() -> None:
    """Every arm has the plan's own."""
    arms = [{"name": "plain"}, {"name": "warned", "treatments": ["warning@2"]}]
    plan = Plan({"world": "rumour", "treatments": ["tiring=0.1@1"], "arm": arms})
    found = [plan.options(each, 0).treatments for each in plan.configurations()]
    assert found == [("tiring=0.1@1",), ("tiring=0.1@1", "warning@2")]


def test_a_plan_is_the_feed_with_one_seed_by_default() -> None:
    """A plan that says nothing is one run of the social feed."""
    plan = Plan({})
    (only,) = plan.configurations()
    assert (only.name, only.arm, plan.seeds) == ("all", None, (0,))
    assert plan.options(only, 0).to_config() == Run(Feed).to_config()
    assert Plan({"seeds": 3}).seeds == (0, 1, 2)


def test_settings_of_a_model_are_those_of_a_run_and_an_arm_may_have_others() -> None:
    """The keys of [reasoner] are options of a model; an arm says what is different.

    Each run has its part of the calls of a budget, and all of its time.
    """
    model = {"model": "small", "host": "http://127.0.0.1:1", "temperature": 0.5}
    arms = [{"name": "small"}, {"name": "large", "reasoner": {"model": "large"}}]
    plan = Plan({"reasoner": model, "arm": arms, "writer": {"language": "German"}})
    small, large = (plan.options(each, 0) for each in plan.configurations())

    assert small.reasoner == Model("small", ("http://127.0.0.1:1",), temperature=0.5)
    bounded = Plan({"reasoner": model, "budget": {"max_calls": 9, "deadline": 60}})
    part = bounded.options(*bounded.configurations(), 0, of=2).reasoner
    assert part == replace(small.reasoner, max_calls=4, deadline=60)
    assert small.writer is not None
    assert small.writer.language == "German"
    other = small.replace(reasoner=replace(small.reasoner, model="large"))
    assert large.to_config() == other.to_config()


def test_files_are_looked_for_beside_the_plan(tmp_path: Path) -> None:
    """Worlds, agents, posts and policies are read from the folder of the plan that names them."""
    text = 'world = "mine.py:Mine"\nagents = "people.csv"\n[reasoner]\npolicy = "chances.toml"\n'
    plan = Plan.from_file(written(tmp_path, text))
    assert plan.data["world"] == f"{tmp_path}/mine.py:Mine"
    assert plan.data["agents"] == f"{tmp_path}/people.csv"
    assert plan.data["reasoner"]["policy"] == f"{tmp_path}/chances.toml"


def test_what_is_wrong_is_reported_with_lines_and_keys(tmp_path: Path) -> None:
    """All mistakes of a plan are one error, which names the line and the key of each."""
    text = PLAN.replace("seeds = [3, 5]", "sedes = 3").replace("rounds = 4", "rounds = 0")
    with pytest.raises(InputError) as caught:
        Plan.from_file(written(tmp_path, text))

    path = tmp_path / "plan.toml"
    assert str(caught.value) == (
        f"{path}: has 2 problems:\n"
        f"  {path}: arm[1].rounds: Input should be greater than or equal to 1, got 0\n"
        f"  {path}: sedes: is unknown; did you mean 'seeds'?"
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"reasoner": {"policy": "p.json", "model": "m"}}, "'policy': decides instead"),
        ({"arm": [{"name": "a", "reasoner": {"host": "h"}}]}, "needs the name of a model, as"),
        ({"reasoner": {"model": "m", "host": ["http://a:secret@127.0.0.1:1"]}}, "environment v"),
        ({"vary": {"agents": [0]}}, "'vary.agents[0]': Input should be greater than or equal to 1"),
    ],
)
def test_impossible_settings_are_refused(data: dict[str, Any], said: str) -> None:
    """Of models that nobody names or with passwords, and what a world does not have."""
    with pytest.raises(InputError) as caught:
        Plan(data).check()
    assert said in str(caught.value)


def test_configurations_of_one_name_are_told_apart() -> None:
    """Names that differ in signs that no folder may have, or in case alone, get numbers."""
    plan = Plan({"arm": [{"name": name} for name in ("a b", "A/b", "a-b-2")]})
    assert [each.name for each in plan.configurations()] == ["a-b", "A-b-2", "a-b-2-2"]


def test_sizes_and_presets_are_varied_like_parameters(tmp_path: Path) -> None:
    """Agents, a number or a file, and presets."""
    text = '[vary]\nagents = [9, "who.csv"]\npreset = ["classic", "twitter"]\nherding = [1.0]\n'
    plan = Plan.from_file(written(tmp_path, text))
    last = plan.configurations()[-1]
    assert last.name.endswith("who.csv,preset=twitter,herding=1.0")
    assert last.parameters == {"herding": 1.0}
    assert (last.settings["agents"], last.settings["preset"]) == (f"{tmp_path}/who.csv", "twitter")
    assert (
        plan.options(plan.configurations()[0], 3).to_config()
        == Run(Feed, 9, seed=3, parameters={"preset": "classic", "herding": 1.0}).to_config()
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[4, 8]", '[4, "many"]', "unable to parse string as an integer, got 'many'"),
        ("@2", "@9", "treatment warning@9: the run has the rounds 1 to 4 (in warned,friends=4)"),
        ("warning", "alarm", "Rumour has no treatment 'alarm'"),
        ("[vary]", "[reasoner]\npolicy = 'how.json'\n[vary]", "how.json"),
        ("[3, 5]", "[3, 3]", "field 'seeds': must not have 3 twice"),
        ("[4, 8]", "[4, 4.0]", "field 'vary.friends': must not have 4.0 twice"),
        ('"warned"', '"control"', "field 'arm': must not have 'control' twice"),
        ("[vary]", "[bounds]\nfriends = [4, 2]\n[vary]", "'bounds.friends': must have least below"),
        (
            "[vary]",
            "[bounds]\na = {least=0, most=2, scale='log'}\n[vary]",
            "bounds.a': must be ab",
        ),
    ],
)
def test_a_file_whose_runs_are_impossible_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Before any begins: runs of one name, and what the world or its files do not have."""
    with pytest.raises(InputError) as caught:
        Plan.from_file(written(tmp_path, PLAN.replace(old, new))).check()
    assert said in str(caught.value)


def test_a_sample_that_the_world_refuses_is_named() -> None:
    """The first sample beyond what the parameter takes is told."""
    plan = Plan({"world": "lake", "bounds": {"rest_below": [0.1, 9.0]}})
    with pytest.raises(InputError, match=r"rest_below: Input should be .*in sample-00002"):
        plan.check(plan.samples([{"rest_below": value} for value in (0.5, 2.0)]))
