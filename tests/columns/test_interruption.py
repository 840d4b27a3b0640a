"""Ctrl-C in a run in columns ends it, also in a step that would never end."""

import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Timer, main_thread
from typing import Any

import pytest

from prism.worlds import Run, resume
from tests.columns.written import town, world

ENDLESS = """
while self.is_endless:
    person.counted = 3
"""
COUNTING = """
for _ in range(10 ** 12 if self.is_endless else 1):
    person.counted = 3
"""
MORE = """
is_endless: bool = state(False)

def tick_begins(self) -> None:
    self.is_endless = self.round == 2 and PRESS()
"""
GUARD = """
def is_open(agent, context):
    while agent.seen < 1.0:
        agent.seen
    return True

class Person(Agent):
    chart = Statechart(
        Mind,
        [Transition("up", Mind.LOW, Mind.HIGH, guard=is_open)],
        initial=Mind.LOW,
        name="mind",
    )
    seen: float = state(0.0)

class Town(World[Person]):
    rounds = 3

    def tick_begins(self) -> None:
        PRESS()
        self.agents[0].fire("up")

    @during(Mind.HIGH)
    def step(self, person: Person) -> None:
        person.seen = 1.0
"""


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Have an interruption raise KeyboardInterrupt, also where a shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_soon() -> bool:
    """Interrupt the main thread soon, as a terminal does."""
    Timer(0.4, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()
    return True


def pressing(cls: Any) -> Any:
    """Give a world's file what presses Ctrl-C."""
    cls.tick_begins.__globals__["PRESS"] = press_soon
    return cls


def require_interrupted(cls: Any, folder: Path, capsys: Any) -> None:
    """Require a run to end by Ctrl-C in its second round, to say where, and to be resumable."""
    with pytest.raises(KeyboardInterrupt):
        Run(cls, 20, seed=1, columns=True).keep(folder / "run", checkpoint_every=0)
    (said,) = capsys.readouterr().err.splitlines()
    assert "prism: interrupted at " in said
    assert ", in Town.step: " in said
    assert "; in the step of 'person_" in said

    log = folder / "run" / "events.jsonl"
    assert log.read_text().count('"round.ended"') == 1
    cls.tick_begins.__globals__["PRESS"] = lambda: False
    outcome = resume(folder / "run")
    assert outcome is not None
    assert [each.number for each in outcome.results.rounds] == [1, 2, 3]


@pytest.mark.parametrize("step", [ENDLESS, COUNTING], ids=["while", "range"])
@pytest.mark.sampled(2)
def test_an_endless_step_is_ended_by_ctrl_c(step: str, tmp_path: Path, capsys: Any) -> None:
    """One Ctrl-C ends a step that would never end, and its line and agent are told."""
    require_interrupted(pressing(town(step, tmp_path, kind="def", more=MORE)), tmp_path, capsys)


@pytest.mark.slow
def test_an_endless_guard_of_a_hook_is_ended_by_ctrl_c(tmp_path: Path, capsys: Any) -> None:
    """Where a hook fires an event whose guard never ends, one Ctrl-C ends it, too."""
    with pytest.raises(KeyboardInterrupt):
        Run(pressing(world(GUARD, tmp_path)), 20, columns=True).run()
    assert "while agent.seen < 1.0:" in capsys.readouterr().err


@pytest.mark.slow
def test_machine_code_is_ended_by_ctrl_c(tmp_path: Path, capsys: Any) -> None:
    """Compiled loops are ended, too."""
    cls = pressing(town(ENDLESS, tmp_path, kind="def", more=MORE))
    require_interrupted(cls, tmp_path, capsys)
