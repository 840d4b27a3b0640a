"""Treatments of a world's class and of parameters."""

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import FieldTypeError, FieldValueError, InputError
from prism.examples import Rumour
from prism.worlds import treatment
from tests.kit.worlds import run_logged


class Warned(Rumour):
    """A rumour whose class treats people itself."""

    @treatment
    def silence(self) -> None:
        for person in self.assign("silence", 0.02):
            person.trust = 0.0


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
    """The treatment and the changed parameters are in its event."""
    done = run_logged(tmp_path, Rumour(), 20, rounds=3, treatments=["tiring=1@2"])
    (event,) = done.events("treatment.applied")
    assert (event["treatment"], event["round"]) == ("tiring=1", 2)
    assert event["parameters"] == {"tiring": 1}


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        ("tirng=1@1", "Rumour has no parameter 'tirng'"),
        ("tiring=fast@1", "Rumour.tiring: .* got 'fast'"),
        ("tiring=1@99", "tiring=1@99: the run has the rounds 1 to 40"),
        ("warn@3", "has no treatment 'warn'; did you mean 'warning'"),
        ("warning", "must have its round, from 1 on: write warning@12"),
        ("warning@0", "must have its round, from 1 on: write warning@12"),
    ],
)
def test_what_cannot_be_done_is_refused_before_round_1(one: Any, problem: str) -> None:
    """The message names the treatment and what is wrong."""
    with pytest.raises((FieldValueError, FieldTypeError, InputError), match=problem):
        _ = Run(Rumour(), 10, treatments=[one]).agents
