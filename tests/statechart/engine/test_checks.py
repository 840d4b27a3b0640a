"""What is refused before anything is chosen: states, triggers and threads that do not belong."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from prism.agents import SocialAgent, StatechartMixin
from prism.errors import AgentError, UnknownStateError, UnknownTriggerError
from prism.statechart import AgentState, Statechart, Transition, social, social_media_chart
from tests.kit.moves import DRIVES, StateOnly, chart_of, snapshot

S = AgentState
READ = Statechart.from_dict(social_media_chart().to_dict(), guards=vars(social))


@pytest.mark.parametrize("drive", ["fire", "fire_to", "tick", "adopt"])
@pytest.mark.parametrize("make", [lambda: SocialAgent("ada"), StateOnly])
def test_a_chart_over_another_enum_does_not_drive_an_agent(make: Any, drive: str) -> None:
    """A member of another enum with the text of a state is refused, and nothing has changed."""
    agent = make()
    with pytest.raises(UnknownStateError, match=r"use a member of chart.state_type \(idle, "):
        DRIVES[drive](READ, agent, "feed_ready")
    assert agent.state is S.IDLE


# Triggers


@pytest.mark.parametrize("drive", ["fire", "fire_to", "enabled_targets"])
@pytest.mark.parametrize(
    ("trigger", "hint"),
    [
        ("feed_redy", "; did you mean 'feed_ready'?"),
        ("zzz", ": known are feed_ready, sees_post, ignores, decides, compose_done, action_done,"),
        (None, ": known are"),
        (["go"], ": known are"),
    ],
)
def test_a_trigger_that_no_transition_has_is_an_error_if_strict_and_one_warning_else(
    drive: str, trigger: Any, hint: str, caplog: pytest.LogCaptureFixture, heard: list[Any]
) -> None:
    """Whatever takes a trigger refuses an unknown one, or warns once; nothing is changed.

    Each fire of an unknown one is logged as an event that made no transition.
    """
    agent = SocialAgent("ada")
    before = snapshot(agent)
    with pytest.raises(UnknownTriggerError) as caught:
        DRIVES[drive](social_media_chart(strict=True), agent, trigger)
    message = f"chart 'social_media': no transition has the trigger {trigger!r}{hint}"
    assert str(caught.value).startswith(message)

    chart = social_media_chart()
    for _ in range(3):
        assert not DRIVES[drive](chart, agent, trigger)
    (warning,) = [each for each in caplog.messages if "no transition has the trigger" in each]
    assert warning.startswith(message)
    refused = [each["trigger"] for each in heard if each["event"] == "statechart.event_refused"]
    text = trigger if isinstance(trigger, str) else repr(trigger)
    assert refused == ([] if drive == "enabled_targets" else [text] * 3)
    assert snapshot(agent) == before


# Threads


class Slow(StatechartMixin):
    """An agent whose action waits until the other thread has fired."""

    agent_id = "ada"

    def __init__(self) -> None:
        self.has_begun, self.may_end = Event(), Event()

    def wait(self) -> None:
        self.has_begun.set()
        assert self.may_end.wait(30)


@pytest.mark.parametrize("trigger", ["go", "back"])
@pytest.mark.parametrize("drive", ["fire", "fire_to", "afire"])
def test_a_second_thread_on_one_agent_is_refused(drive: str, trigger: str) -> None:
    """A fire while another thread runs an action of the agent is an error, and changes nothing."""
    chart = chart_of(
        Transition("go", S.IDLE, S.RESTING, action=lambda agent, context: agent.wait()),
        Transition("back", S.RESTING, S.IDLE),
    )
    agent = Slow()
    with ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
        first = pool.submit(chart.fire, agent, "go")
        assert agent.has_begun.wait(30)
        try:
            with pytest.raises(AgentError) as caught:
                DRIVES[drive](chart, agent, trigger)
        finally:
            agent.may_end.set()

        assert first.result(30) is S.RESTING
    assert "agent 'ada' is in a transition of another thread" in str(caught.value)
    assert len(agent.state_history) == 1
