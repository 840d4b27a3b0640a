"""Another model from a round on."""

import json
from collections import Counter
from pathlib import Path

from prism.runs import ModelOptions, begin, replay
from prism.social import SocialRun
from prism.statechart import PolicyReasoner
from prism.testing import FakeOllama
from prism.worlds import Run, SwitchModel, WorldRun
from prism.worlds.examples import Vaccination
from tests.kit.worlds import Gossip, run_in


def test_a_share_of_the_agents_has_another_model_later_on(tmp_path: Path) -> None:
    """Each decision names its model, costs are told by model, and a replay writes the same log."""
    with FakeOllama(models=["small", "large"]) as server:
        options = SocialRun(
            20,
            rounds=4,
            seed=1,
            reasoner=ModelOptions("small", host=(server.host,)),
            treatments=(SwitchModel(3, model="large", share=0.5),),
        )
        begin(options, tmp_path / "run")

    log = (tmp_path / "run" / "events.jsonl").read_bytes()
    events = [json.loads(line) for line in log.splitlines()]
    arms = {
        each["agent_id"]: each["arm"] for each in events if each["event"] == "treatment.assigned"
    }
    asked = [each for each in events if each["event"] == "reasoner.decision"]
    for each in asked:
        is_switched = each["round"] >= 3 and arms[each["agent_id"]] == "model"
        assert each["model"] == ("large" if is_switched else "small")

    counts = Counter(each["model"] for each in asked)
    assert {model: cost["answers"] for model, cost in events[-1]["costs"].items()} == dict(counts)
    assert min(counts.values()) > 0

    replay(tmp_path / "run", SocialRun, tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log


def test_the_policy_decides_until_a_model_does_also_after_a_kill(tmp_path: Path) -> None:
    """A run that began without a model goes on with one, and its budget counts it."""
    with FakeOllama(models=["large"]) as server:
        model = SwitchModel(3, model="large", host=(server.host,))
        run_in(tmp_path / "run", SocialRun(20, rounds=4, treatments=(model,)), [1, 3])

    lines = (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    asked = [each for line in lines if (each := json.loads(line))["event"] == "reasoner.decision"]
    assert {(each["round"] >= 3, each["source"]) for each in asked} == {
        (False, "policy"),
        (True, "model"),
    }
    spent = json.loads((tmp_path / "run" / "run.json").read_text())["spent"]
    assert spent["calls"] == sum(each.get("attempts", 0) for each in asked) > 0


def test_a_run_of_a_world_in_a_folder_switches_its_model(tmp_path: Path) -> None:
    """A run of any world does so as one of the feed, and from the policy to a model, too."""
    with FakeOllama(models=["small", "large"]) as server:
        switch = SwitchModel(2, model="large", host=(server.host,))
        for decider in (ModelOptions("small", host=(server.host,)), None):
            folder = tmp_path / str(decider is None)
            begin(
                WorldRun(Vaccination, 10, rounds=2, reasoner=decider, treatments=(switch,)), folder
            )
            lines = (folder / "events.jsonl").read_text().splitlines()
            asked = [each for line in lines if "chosen" in (each := json.loads(line))]
            models = {(each["round"], each.get("model")) for each in asked}
            assert models == {(1, None if decider is None else "small"), (2, "large")}


def test_a_run_from_python_switches_to_a_reasoner() -> None:
    """Who decides later on may be an object."""
    later = PolicyReasoner(5)
    asked: list[int] = []
    answer = later.answer

    async def noted(questions: object) -> object:
        asked.append(run.world.round)
        return await answer(questions)  # type: ignore[arg-type]

    later.answer = noted  # type: ignore[assignment, method-assign]
    run = Run(Gossip(), 10, rounds=4, treatments=[SwitchModel(3, reasoner=later)])
    run.run()
    assert set(asked) == {3, 4}
