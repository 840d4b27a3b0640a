"""Texts that agents of a world have written: asked for in waves, told in the log, replayed."""

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError, SimulationError
from prism.llm import Model
from prism.reasoner import Budget, Reasoner, Writer
from prism.runs import WriterOptions
from prism.testing import FakeOllama, Fault, LateReasoner, ScriptedWriter
from prism.worlds import during
from tests.kit.lamps import Lamp, Light, Room
from tests.kit.worlds import Gossip, run_logged
from tests.kit.writers import LateWriter


class Signing(Room):
    """Every lamp that is off decides, and then says something."""

    @during(Light.OFF)
    async def sign(self, lamp: Lamp) -> None:
        if int(lamp.agent_id[-1]) % 2:
            await lamp.decide("pressed")
        else:
            lamp.heard.append(await lamp.write("Say hello.", template="hello", key="first"))
        lamp.heard.append(await lamp.write(f"Say it as {lamp.name}.", template="bye"))


class Demanding(Room):
    """A step that asks for a text in the way that a test wants."""

    way: Any = None

    @during(Light.OFF)
    async def sign(self, lamp: Lamp) -> None:
        lamp.heard.append(await lamp.write("Say hello.", **self.way))


@pytest.mark.slow
def test_decisions_and_texts_of_a_wave_are_asked_for_at_the_same_time() -> None:
    """A model is asked for all at once, by one pool and one budget, which count every request."""
    with FakeOllama(
        models=["tiny"], write=lambda prompt, schema: {"text": "Hi!"}, latency=0.05
    ) as server:
        pool, budget = Model("tiny", [server.host], concurrency=16).as_client(), Budget()
        run = Run(
            Signing(),
            8,
            rounds=1,
            reasoner=Reasoner(pool, mode="chat", budget=budget),
            writer=Writer(pool, budget=budget),
        )
        results = run.run()

    assert [len(lamp.heard) for lamp in run.agents] == [1, 2] * 4
    assert results.totals()["texts"] == {"model": 12}
    assert budget.calls == server.asked == 16
    assert server.most_at_once == 8


def test_a_log_does_not_tell_which_answers_came_first(tmp_path: Path) -> None:
    """Whatever overtakes what, of decisions and texts: the log is the same."""
    logs = {
        run_logged(
            tmp_path,
            Signing(),
            8,
            reasoner=LateReasoner(seed=seed),
            writer=LateWriter(seed, share=0.3),
        ).log
        for seed in range(4)
    }
    assert len(logs) == 1


def test_without_a_writer_the_template_is_used_and_reported(tmp_path: Path) -> None:
    """A run without a writer says of every text that it is a template."""
    done = run_logged(tmp_path, Signing(), 2, rounds=1)
    texts = [(each["key"], each["text"], each["source"]) for each in done.events("text.written")]
    assert texts == [
        ("first", "hello", "template"),
        ("text", "bye", "template"),
        ("text", "bye", "template"),
    ]
    assert done.events("run.ended")[0]["texts"] == {"template": 3}


def test_a_writer_that_fails_is_reported_as_a_fallback(tmp_path: Path) -> None:
    """The template stands for a text that did not come, as a warning with its reason."""
    with FakeOllama(models=["tiny"], write=lambda prompt, schema: {"text": " \x07 "}) as server:
        server.fail(Fault.status(500, "no"))
        pool = Model("tiny", [server.host], attempts=1, concurrency=1).as_client()
        world = Demanding(way={"template": "hm"})
        done = run_logged(tmp_path, world, 2, rounds=1, writer=Writer(pool))

    assert [lamp.heard for lamp in done.run.agents] == [["hm"], ["hm"]]
    told = done.events("text.written")
    assert [(each["text"], each["source"]) for each in told] == [("hm", "fallback")] * 2
    assert "no" in told[0]["reason"]
    assert "the text is empty" in told[1]["reason"]


def test_a_text_without_a_template_is_none_when_the_writer_fails(tmp_path: Path) -> None:
    """The step learns that there is no text, and the log says that it failed."""
    done = run_logged(tmp_path, Demanding(way={}), 1, rounds=1, writer=LateWriter(share=1))
    assert done.run.agents[0].heard == [None]
    assert done.events("text.written")[0]["source"] == "failed"


def test_a_text_that_nobody_could_write_is_refused() -> None:
    """Without a writer and a template a run ends at once, and says what to give."""
    with pytest.raises(SimulationError, match=r"no writer: pass Run\(\.\.\., writer=\.\.\.\)"):
        Run(Demanding(way={}), 1).run()


def test_a_text_is_as_long_as_its_call_says() -> None:
    """The length is in the prompt; a schema of one's own gives data."""
    writer = ScriptedWriter(["one two three", "one two three", {"mood": "calm\x07"}])
    ways: list[dict[str, Any]] = [
        {"template": "", "max_length": 9},
        {"template": "", "max_length": 8},
        {"schema": {"type": "object", "required": ["mood"]}},
    ]
    heard = []
    for keys in ways:
        run = Run(Demanding(way=keys), 1, rounds=1, writer=writer)
        run.run()
        heard += run.agents[0].heard

    assert heard == ["one two…", "one two…", {"mood": "calm"}]
    prompts = [call.prompt for call in writer.calls]
    assert ["9 characters" in each for each in prompts[:2]] == [True, False]
    assert all("You are lamp_1." in each and "social media" not in each for each in prompts)
    # what is the same for all comes first
    assert prompts[0].startswith("Write one text")


def test_a_writer_needs_a_model() -> None:
    """Where nobody decides by a model, the writer has to name one; its budget is the decider's."""
    with pytest.raises(InputError, match="needs a model, since none decides"):
        _ = Run(Gossip, writer=WriterOptions()).agents
    both = WriterOptions(Model("small", max_calls=3))
    with pytest.raises(InputError, match="must have no max_calls"):
        _ = Run(Gossip, reasoner=Model("large"), writer=both).agents
