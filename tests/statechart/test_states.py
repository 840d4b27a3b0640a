"""States and state enums."""

import copy
import pickle

from prism.statechart.states import state_enum


def test_state_enum_keeps_texts_and_order() -> None:
    """Any text can be a state, also one that no member could be named after."""
    texts = ["mro", "two words", "*", "=", "name", "_x_", "0"]
    made = state_enum("Odd", texts)
    assert [state.value for state in made] == texts
    assert made.__name__ == "Odd"
    assert all(made(text) == text for text in texts)


def test_states_made_at_run_time_can_be_pickled_and_copied() -> None:
    """A member of a made enum survives pickle and copy, also if its text is no identifier."""
    Mood = state_enum("Mood", ["calm", "mro", "two words", "="])
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert [pickle.loads(pickle.dumps(mood, protocol)) for mood in Mood] == list(Mood)
        assert all(pickle.loads(pickle.dumps(mood, protocol)) is mood for mood in Mood)
    assert all(copy.deepcopy(mood) is mood and copy.copy(mood) is mood for mood in Mood)
