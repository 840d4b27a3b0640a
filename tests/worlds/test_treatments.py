"""Treatments of a world's class, ready-made ones, and how a run keeps them."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism import Run, replay
from prism.errors import FieldTypeError, FieldValueError, InputError
from prism.examples import Rumour, Vaccination
from prism.llm import Model
from prism.statechart import PolicyReasoner
from prism.testing import FakeOllama
from prism.worlds import SetParameters, SwitchModel, treatment
from tests.kit.worlds import Gossip, run_in, run_logged


class Warned(Rumour):
    """A rumour whose class treats people itself."""

    @treatment
    def doubt(self) -> None:
        """Halve the trust of some."""
        for person in self.assign("doubt", 0.5, experiment="trust"):
            person.trust = person.trust / 2

    @treatment
    def belief(self) -> None:
        """Let others believe everything."""
        for person in self.assign("belief", 0.5, experiment="trust"):
            person.trust = 1.0

    @treatment
    def silence(self) -> None:
        """Take the trust of a few."""
        for person in self.assign("silence", 0.02):
            person.trust = 0.0


TREATMENTS = ("doubt@2", SetParameters(3, {"tiring": "0.9"}), "belief@4", "tiring=0.7@5")


def test_a_treated_run_is_resumed_with_the_same_bytes(tmp_path: Path) -> None:
    """Own and ready-made treatments: the log of a run that was stopped each round is the same."""
    options = Run(Warned, 30, rounds=5, seed=3, treatments=TREATMENTS)
    whole = run_in(tmp_path / "whole", options)
    assert run_in(tmp_path / "stopped", options, [1, 2, 3, 4]) == whole
    assert b'"experiment":"trust","arm":"belief"' in whole


def test_the_rounds_before_are_those_of_an_untreated_run(tmp_path: Path) -> None:
    """Up to the treatment's own line, the log is the same; nobody's draws are shifted."""
    plain = run_logged(tmp_path, Warned(), 60, rounds=6, seed=3)
    treated = run_logged(tmp_path, Warned(), 60, rounds=6, seed=3, treatments=["silence@4"])
    begin = treated.log.index(b'{"event":"treatment.applied"')
    assert plain.log[:begin] == treated.log[:begin]

    assigned = treated.events("treatment.assigned")
    assert len(assigned) == 60
    nobody = [each["agent_id"] for each in assigned if each["arm"] == "silence"]
    assert nobody == [agent.agent_id for agent in treated.run.agents if agent.trust == 0.0]


def test_what_is_applied_stands_in_the_log(tmp_path: Path) -> None:
    """Changed parameters and the treatment's settings are in its event."""
    done = run_logged(tmp_path, Rumour(), 20, rounds=3, treatments=["tiring=1@2"])
    (event,) = done.events("treatment.applied")
    assert (event["treatment"], event["round"]) == ("set", 2)
    assert event["parameters"] == {"tiring": 1}
    assert event["settings"] == {"kind": "set", "parameters": {"tiring": 1}}


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (SetParameters(1, {"tirng": 1}), "'set': Rumour has no parameter 'tirng'"),
        (SetParameters(1, {"tiring": "fast"}), "Rumour.tiring: .* got 'fast'"),
        (SetParameters(99, {"tiring": 1}), "set@99: the run has 40 rounds"),
        ("tirng=1@1", "'set': Rumour has no parameter 'tirng'"),
        ("warn@3", "has no treatment 'warn': it has warning"),
        ("warning", "needs its round: write warning@12"),
        ("warning@0", "the run has the rounds 1 to 40: write warning@1"),
    ],
)
def test_what_cannot_be_done_is_refused_before_round_1(one: Any, problem: str) -> None:
    """The message names the treatment and what is wrong."""
    with pytest.raises((FieldValueError, FieldTypeError), match=problem):
        _ = Run(Rumour(), 10, treatments=[one]).agents


def test_treatments_are_kept_as_they_are(tmp_path: Path) -> None:
    """What run.json has of treatments is read as they were, whatever their kind."""
    run = Run(Warned, 20, rounds=5, treatments=TREATMENTS)
    assert run.treatments[3] == SetParameters(5, {"tiring": 0.7})
    config = json.loads(json.dumps(run.to_config()))
    assert Run.from_config(config, tmp_path / "run.json").treatments == run.treatments


@pytest.mark.parametrize(
    "edited",
    [{"kind": "sett", "round": 4}, {"kind": "set", "round": 0}, {"round": 4}, 3],
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


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: SetParameters(0), "round"),
        (lambda: SetParameters(1, name="control"), "name"),
        (lambda: SwitchModel(1), "model"),
        (lambda: SwitchModel(1, model="a", share=0), "share"),
    ],
)
def test_what_no_treatment_can_be_is_refused(make: Any, field: str) -> None:
    """The error names the field."""
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


def test_a_run_in_a_folder_switches_its_model(tmp_path: Path) -> None:
    """From one model, or from the policy, to another model, and a replay writes the same log."""
    with FakeOllama(models=["small", "large"]) as server:
        switch = SwitchModel(2, model=f"ollama:large@{server.host}")
        for decider in (Model("small", hosts=(server.host,)), None):
            folder = tmp_path / str(decider is None)
            Run(Vaccination, 10, rounds=2, reasoner=decider, treatments=(switch,)).keep(folder)
            log = (folder / "events.jsonl").read_bytes()
            asked = [each for line in log.splitlines() if "chosen" in (each := json.loads(line))]
            models = {(each["round"], each.get("model")) for each in asked}
            assert models == {(1, None if decider is None else "small"), (2, "large")}
            replay(folder, tmp_path / f"again_{decider is None}")
            again = tmp_path / f"again_{decider is None}" / "events.jsonl"
            assert again.read_bytes() == log


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
