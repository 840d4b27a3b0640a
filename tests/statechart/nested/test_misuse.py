"""What a chart with states inside states may not be, each with its sentence."""

from __future__ import annotations

from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import History, State, Transition
from tests.statechart.nested.phone import Phone, phone


def misused(*more: Any, states: Any = None, **options: Any) -> str:
    """Return what is said of a chart that is wrong."""
    with pytest.raises(DefinitionError) as caught:
        phone(*more, states=states, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            Transition("x", Phone.POCKET, History(Phone.READING)),
            "'reading' has no substates, so it has no history",
        ),
        (
            Transition("x", Phone.POCKET, (Phone.READING, Phone.REPLYING)),
            "'reading' and 'replying' do not lie in different regions",
        ),
        (
            Transition("x", Phone.SENT, Phone.POCKET),
            "it leaves 'sent', which is a final state",
        ),
        (
            Transition("x", Phone.POCKET, History(Phone.ENGAGING, default=Phone.POCKET)),
            "'pocket' does not lie inside 'engaging'",
        ),
        (Transition("x", "*", Phone.POCKET, internal=True), "it is internal, so its source"),
    ],
)
def test_a_transition_that_cannot_be_is_refused(item: Any, message: str) -> None:
    """At definition, with its number and what to do."""
    assert message in misused(item)


def test_a_tree_that_cannot_be_is_refused() -> None:
    """Each with its sentence."""
    twice = [Phone.POCKET, State(Phone.ENGAGING, [Phone.READING, Phone.POCKET])]
    assert "'pocket' appears in the tree twice" in misused(states=twice)
    with pytest.raises(DefinitionError, match="has no substates"):
        State(Phone.ENGAGING, parallel=True)
    assert "'engaging' has substates: make one of these final" in misused(
        final_states=[Phone.ENGAGING]
    )
    with pytest.raises(DefinitionError, match="is parallel, so all its regions are entered"):
        State(Phone.ENGAGING, [Phone.READING, Phone.SENT], initial=Phone.SENT, parallel=True)
    regions = [Phone.POCKET, State(Phone.ENGAGING, [*USED_STATES], parallel=True)]
    assert "state 'sent' is a region, which cannot be final itself" in misused(
        states=[*regions], final_states=[Phone.SENT]
    )
    assert "'pocket' does not lie inside 'engaging'" in misused(
        states=[Phone.POCKET, State(Phone.ENGAGING, USED_STATES, initial=History(Phone.POCKET))]
    )


USED_STATES = (Phone.READING, Phone.REPLYING, Phone.SENT, Phone.BROKEN)


def test_shares_beyond_the_whole_are_refused() -> None:
    """A sum that is a little more than 1 is one."""
    shares = [Transition("x", Phone.POCKET, Phone.READING, probability=0.6) for _ in range(2)]
    assert "the probabilities of 'x' in 'pocket' add up to 1.2" in misused(*shares)
    whole = (0.33, 0.56, 0.11)
    phone(*(Transition("x", Phone.POCKET, Phone.READING, probability=each) for each in whole))
