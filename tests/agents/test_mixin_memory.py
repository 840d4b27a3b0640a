"""What a chart with histories or timers remembers about an agent."""

from typing import Any

from prism.agents import StatechartMixin


class Agent(StatechartMixin):
    """An agent that adds nothing."""


def test_the_charts_memory_is_a_dict_or_none() -> None:
    """It is there from the start."""
    agent = Agent()
    agent.state_memory = {"ticks": 1}
    assert agent.state_memory == {"ticks": 1}
    agent.state_memory = None
    assert agent.state_memory is None


def test_the_charts_memory_is_never_that_of_another_object() -> None:
    """Also if the class looks up in the other object whatever it lacks."""
    other = Agent()
    other.state_memory = {"ticks": 1}

    class Wrapper(Agent):
        def __getattr__(self, name: str) -> Any:
            return getattr(other, name)

    agent = Wrapper()
    assert agent.state_memory is None
    agent.state_memory = None
    agent.state_memory = {"ticks": 2}
    agent.state_memory = None
    assert agent.state_memory is None
    assert other.state_memory == {"ticks": 1}
