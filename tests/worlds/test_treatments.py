"""Ready-made treatments of every world, and how a run keeps them."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from prism import Run, replay, resume
from prism.errors import FieldTypeError, FieldValueError, InputError
from prism.examples import Rumour, Vaccination
from prism.examples.rumour import Mind, Person
from prism.llm import Model
from prism.social import Feed, Likes, PublishPost
from prism.statechart import PolicyReasoner
from prism.testing import FakeOllama
from prism.worlds import SetParameters, SharedTreatment, SwitchModel, World, treatment
from prism.worlds._treatments import tables_of
from tests.kit.worlds import Gossip, run_in, run_logged


@dataclass(frozen=True, slots=True)
class Silence(SharedTreatment):
    """A treatment of a user's own: the trust of some agents is 0."""

    kind: ClassVar[str] = "silence"

    def apply(self, world: World[Any]) -> None:
        for agent in self.treated(world, self.candidates(world)):
            agent.trust = 0.0


class Warned(Rumour):
    """A rumour whose class treats people itself, and knows a ready-made treatment of its own."""

    treatment_classes = (Silence,)

    @treatment
    def doubt(self) -> None:
        for person in self.assign("doubt", 0.5, experiment="trust"):
            person.trust = person.trust / 2

    @treatment
    def belief(self) -> None:
        for person in self.assign("belief", 0.5, experiment="trust"):
            person.trust = 1.0


TREATMENTS = (
    "doubt@2",
    SetParameters(3, {"tiring": "0.9"}),
    Silence(3, share=0.3),
    "belief@4",
)


def test_a_treated_run_is_resumed_with_the_same_bytes(tmp_path: Path) -> None:
    """Own and ready-made treatments: the log of a run that was stopped each round is the same."""
    options = Run(Warned, 30, rounds=5, seed=3, treatments=TREATMENTS)
    whole = run_in(tmp_path / "whole", options)
    assert run_in(tmp_path / "stopped", options, [1, 2, 3, 4]) == whole
    assert b'"experiment":"trust","arm":"belief"' in whole


def test_the_rounds_before_are_those_of_an_untreated_run(tmp_path: Path) -> None:
    """Up to the treatment's own line, the log is the same; behind it nobody's draws are shifted."""
    plain = run_logged(tmp_path, Warned(), 60, rounds=6, seed=3)
    treated = run_logged(
        tmp_path, Warned(), 60, rounds=6, seed=3, treatments=[Silence(4, share=0.01)]
    )
    begin = treated.log.index(b'{"event":"treatment.applied"')
    assert plain.log[:begin] == treated.log[:begin]

    # who was treated is told, and a treatment that changes nothing changes nothing
    assigned = treated.events("treatment.assigned")
    assert len(assigned) == 60
    nobody = [each["agent_id"] for each in assigned if each["arm"] == "silence"]
    dead = [agent.agent_id for agent in treated.run.agents if agent.trust == 0.0]
    assert nobody == dead


def test_what_is_applied_stands_in_the_log(tmp_path: Path) -> None:
    """Changed parameters and the treatment's settings are in its event."""
    done = run_logged(
        tmp_path, Rumour(), 20, rounds=3, treatments=[SetParameters(2, {"tiring": 1})]
    )
    (event,) = done.events("treatment.applied")
    assert (event["treatment"], event["round"]) == ("set", 2)
    assert event["parameters"] == {"tiring": 1}
    assert event["settings"] == {"kind": "set", "parameters": {"tiring": 1}}


def test_only_those_who_come_into_question_are_treated(tmp_path: Path) -> None:
    """Agents are chosen by their ids, and by what they have."""
    world = Warned()
    people = [Person(trust=number / 10) for number in range(10)]
    by_trust = Silence(
        1, where={"trust": [0.1, 0.5, 0.9]}, agents=["person_2", "person_6", "person_3"]
    )
    done = run_logged(tmp_path, world, people, rounds=1, treatments=[by_trust])
    told = [each["agent_id"] for each in done.events("treatment.assigned")]
    assert told == ["person_2", "person_6"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (SetParameters(1, {"tirng": 1}), "'set': Rumour has no parameter 'tirng'"),
        (SetParameters(1, {"tiring": "fast"}), "Rumour.tiring must be float, got 'fast'"),
        (SetParameters(1, {"tiring": "inf"}), "Rumour.tiring must be a finite number, got 'inf'"),
        (SetParameters(99, {"tiring": 1}), "set@99: the run has the rounds 1 to 40"),
        ("tirng=1@1", "'set': Rumour has no parameter 'tirng'"),
        (Silence(1, agents=("nobody",)), "there is no agent 'nobody'"),
        (Silence(1, where={"age": 3}), "no agent has an attribute 'age'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_round_1(given: Any, problem: str) -> None:
    """The message names the treatment and what is wrong."""
    with pytest.raises((FieldValueError, FieldTypeError), match=problem):
        _ = Run(Rumour(), 10, treatments=[given]).agents


def test_treatments_are_kept_as_they_are(tmp_path: Path) -> None:
    """What run.json has of treatments is read as they were, whatever their kind."""
    given = (*TREATMENTS, "tiring=0.7@5", Silence(4, where={"name": ["a", "b"]}, name="some"))
    run = Run(Warned, 20, rounds=5, treatments=given)
    assert run.treatments[4] == SetParameters(5, {"tiring": 0.7})
    config = json.loads(json.dumps(run.to_config()))
    assert config["treatments"][0] == "doubt@2"
    assert Run.from_config(config, tmp_path / "run.json").treatments == run.treatments


@pytest.mark.parametrize(
    "edited",
    [
        {"kind": "silense", "round": 4},
        {"kind": "silence", "round": 0},
        {"kind": "silence", "round": 4, "shair": 0.5},
        {"round": 4},
        3,
    ],
)
def test_treatments_that_were_edited_are_refused(edited: Any, tmp_path: Path) -> None:
    """The message names the file and the key."""
    config = Run(Warned, 20, treatments=TREATMENTS).to_config() | {"treatments": [edited]}
    with pytest.raises(InputError, match=r"run.json, field 'treatments': cannot be read"):
        Run.from_config(config, tmp_path / "run.json")


class Coin:
    """A reasoner that derives from nothing."""

    async def decide_many(self, questions: Any, *, logger: Any = None) -> Any:
        """Never get there."""


@pytest.mark.parametrize(
    ("reasoner", "switch", "error", "problem"),
    [
        (Coin(), SwitchModel(2, reasoner=PolicyReasoner()), FieldTypeError, "Coin does not"),
        (None, SwitchModel(2, reasoner=Coin()), FieldTypeError, "from BaseReasoner; Coin does"),  # type: ignore[arg-type]
        (Coin(), SwitchModel(2, model="a"), FieldValueError, "there is nobody to switch to: give"),
    ],
)
def test_a_switch_between_reasoners_needs_those_of_prism(
    reasoner: Any, switch: SwitchModel, error: type[Exception], problem: str
) -> None:
    """Before the first round, the run says which of them cannot be switched."""
    with pytest.raises(error, match=problem):
        Run(Rumour, 12, reasoner=reasoner, treatments=[switch]).run()


@pytest.mark.parametrize(("kind", "trust"), [("Person", {0.0}), ("Robot", {1.0})])
def test_a_treatment_may_be_for_one_kind_of_agents(kind: str, trust: set[float]) -> None:
    """The name of their class is an attribute of agents."""
    people = [Person(trust=1.0) for _ in range(12)]
    run = Run(Warned(), people, rounds=1, treatments=[Silence(1, where={"kind": kind})])
    run.run()
    assert {each.trust for each in run.agents} == trust


def test_treatments_that_were_changed_are_not_resumed(tmp_path: Path) -> None:
    """A run whose run.json says something else than its checkpoint is refused."""
    folder = tmp_path / "run"
    options = Run(Warned, 20, rounds=4, treatments=(Silence(2, share=0.5),))

    class Stopped(Exception):
        """Ends the run."""

    def stop(summary: Any) -> None:
        if summary.number == 2:
            raise Stopped

    with pytest.raises(Stopped):
        options.keep(folder, on_round=stop, checkpoint_every=0)

    summary = folder / "run.json"
    summary.write_text(summary.read_text().replace('"share": 0.5', '"share": 0.4'))
    with pytest.raises(InputError, match="has changed since the run began"):
        resume(folder)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Likes(0), "round"),
        (lambda: Likes(1, share=0), "share"),
        (lambda: Likes(1, name="control"), "name"),
        (lambda: Likes(1, number=0), "number"),
        (lambda: Likes(3, until=2), "until"),
        (lambda: Likes(1, posts=("post", "story")), "posts"),
        (lambda: PublishPost(1, "a", " "), "text"),
        (lambda: SwitchModel(1), "model"),
        (lambda: SwitchModel(1, model="a", temperature=-1.0), "temperature"),
        (lambda: SwitchModel(1, model="a", pick="best"), "pick"),
        (lambda: SwitchModel(1, model="a", hosts=("http://me:secret@h",)), "hosts"),
        (lambda: SwitchModel(1, model="a", hosts=("ht tp://h",)), "hosts"),
        (lambda: tables_of([SwitchModel(1, reasoner=PolicyReasoner())]), "reasoner"),
    ],
)
def test_what_no_treatment_can_be_is_refused(make: Any, field: str) -> None:
    """The error names the field."""
    with pytest.raises(InputError) as caught:
        make()

    assert caught.value.field == field


def test_states_are_untouched_by_measuring_treatments() -> None:
    """A treatment of everybody leaves nobody who believes."""
    run = Run(Warned(), 30, rounds=8, seed=1, treatments=[Silence(1)])
    results = run.run()
    assert results.rounds[-1].states[Mind.IGNORANT.value] >= 29 - 1


def test_a_treatment_that_does_not_say_what_it_does_is_refused() -> None:
    """A class without ``apply`` cannot be made, so that no run goes without its treatment."""
    forgotten: Any = type("Forgotten", (SharedTreatment,), {})
    with pytest.raises(TypeError, match="apply"):
        forgotten(1, share=0.5)


@pytest.mark.slow
def test_a_share_of_the_agents_has_another_model_later_on(tmp_path: Path) -> None:
    """Each decision names its model, costs are told by model, and a replay writes the same log."""
    with FakeOllama(models=["small", "large"]) as server:
        options = Run(
            Feed,
            8,
            rounds=4,
            seed=1,
            reasoner=Model("small", hosts=(server.host,)),
            treatments=(SwitchModel(3, model="large", share=0.5),),
        )
        options.keep(tmp_path / "run")

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

    replay(tmp_path / "run", tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log


@pytest.mark.slow
def test_the_policy_decides_until_a_model_does_also_after_a_kill(tmp_path: Path) -> None:
    """A run that began without a model goes on with one, and its budget counts it."""
    with FakeOllama(models=["large"]) as server:
        model = SwitchModel(3, model="large", hosts=(server.host,))
        run_in(tmp_path / "run", Run(Feed, 12, rounds=4, seed=1, treatments=(model,)), [1, 3])

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
        switch = SwitchModel(2, model="large", hosts=(server.host,))
        for decider in (Model("small", hosts=(server.host,)), None):
            folder = tmp_path / str(decider is None)
            Run(Vaccination, 10, rounds=2, reasoner=decider, treatments=(switch,)).keep(folder)
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
