"""Fields of agents that are drawn."""

from prism import Run
from prism.randomness import RandomStream
from prism.worlds import (
    Agent,
    World,
    draw,
    one_of,
    state,
    uniform,
)
from tests.kit.lamps import Lamp


class Citizen(Agent):
    """Somebody with a field of every distribution."""

    chart = Lamp.chart
    between: float = uniform(0, 1)
    city: str = one_of("Tartu", "Lund")
    walk: list[float] = draw(lambda random: [random.normal() for _ in range(3)])
    mood: float = state(uniform(0, 1))


class City(World[Citizen]):
    """A world of them."""


def test_a_field_is_drawn_by_a_stream_of_its_own() -> None:
    """Each value is the first number of the stream of (seed, field, agent, name)."""
    run = Run(City(), 3, seed=5)
    for agent in run.agents:

        def stream(name: str, agent: Agent = agent) -> RandomStream:
            return RandomStream(5, "field", agent.agent_id, name)

        assert agent.between == stream("between").random()
        assert agent.city == stream("city").choice(["Tartu", "Lund"])
        assert agent.walk == [stream("walk").normal(), *agent.walk[1:]]
        assert 0 <= agent.mood < 1
