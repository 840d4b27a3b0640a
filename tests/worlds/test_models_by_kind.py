"""Models of their own for the kinds of agents in a world."""

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from prism import Run, replay
from prism.llm import Model
from prism.statechart import Statechart, Transition
from prism.testing import FakeOllama
from prism.worlds import Agent, World, during

Buying = StrEnum("Buying", ["LOOKS", "BUYS"])
Selling = StrEnum("Selling", ["WAITS", "SELLS"])


class Buyer(Agent):
    """An agent whose model is found by its chart."""

    chart = Statechart(
        Buying,
        [Transition("offers", Buying.LOOKS, each) for each in Buying],
        Buying.LOOKS,
        name="buying",
        decision_states=[Buying.LOOKS],
    )


class Seller(Agent):
    """An agent whose model is found by its class."""

    chart = Statechart(
        Selling,
        [Transition("asks", Selling.WAITS, each) for each in Selling],
        Selling.WAITS,
        name="selling",
        decision_states=[Selling.WAITS],
    )


class Shop(World[Agent]):
    """Two kinds of agents who decide all the time."""

    rounds = 2
    ticks = 2

    def populate(self, number: int) -> Iterator[Agent]:
        for place in range(number):
            yield (Buyer if place % 3 else Seller)(agent_id=f"a{place}")

    @during(Buying.LOOKS)
    async def look(self, buyer: Buyer) -> None:
        await buyer.decide("offers", prompt="Do you buy?")

    @during(Selling.WAITS)
    async def wait(self, seller: Seller) -> None:
        await seller.decide("asks", prompt="Do you sell?")


def test_kinds_have_models_of_their_own(tmp_path: Path) -> None:
    """Agents of each kind ask their model within the limit of the server; a replay is the same."""
    with FakeOllama(models=["tiny", "large"], latency=0.002) as server:
        options = Model(
            "tiny",
            hosts=(server.host,),
            concurrency=2,
            assigned={"kind Seller": {"model": "large"}, "chart buying": {"temperature": 0.3}},
        )
        outcome = Run(Shop, 9, reasoner=options).keep(tmp_path / "run")
        temperatures = {
            (asked.body["model"], asked.body["options"]["temperature"])
            for asked in server.questions
        }
        # each model has its own limit
        assert server.most_at_once <= 4
    assert temperatures == {("large", 0.0), ("tiny", 0.3)}

    log = (tmp_path / "run" / "events.jsonl").read_bytes()
    first, *events = map(json.loads, log.splitlines())
    assert [(each["for"], each["agents"]) for each in first["models"]] == [
        ("all others", 0),
        ("kind Seller", 3),
        ("chart buying", 6),
    ]
    models = {
        event["agent_id"]: event["model"]
        for event in events
        if event["event"] == "reasoner.decision"
    }
    sellers = {"a0", "a3", "a6"}
    assert models == {f"a{n}": "large" if f"a{n}" in sellers else "tiny" for n in range(9)}
    assert outcome.summary["spent"]["by_model"] == events[-1]["costs"]

    replay(tmp_path / "run", tmp_path / "again")
    assert (tmp_path / "again" / "events.jsonl").read_bytes() == log
