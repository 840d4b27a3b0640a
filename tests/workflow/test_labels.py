"""Letters and numbers under which a prompt offers its keys."""

import pytest

from prism.statechart.reasoner._replies._reading import read_choice
from prism.workflow._replies import offered_labels
from tests.statechart.reasoner.replies.test_options import KEYS, LABELS, LETTERS, NUMBERS


@pytest.mark.parametrize(
    ("prompt", "labels"),
    [
        (LETTERS, LABELS["A"]),
        (NUMBERS, LABELS["1"]),
        ("Choose (a) continue, (b) pivot or (c) ship.", LABELS["a"]),
        ("0 = continue, 1 = pivot", {"0": "continue", "1": "pivot"}),
        ("- **A**: continue\n- **B**: ship", {"A": "continue", "B": "ship"}),
        ("Option A: continue\nOption B: ship", {"A": "continue", "B": "ship"}),
        ("A) Keep working (continue)\nB) Move on -> ship", {"A": "continue", "B": "ship"}),
        ("Respond with: continue, pivot, or ship", {}),
        ("A) continue", {}),
        ("B) continue\nC) pivot", {}),
        ("Score: 5. Continue or pivot?", {}),
        ("1. Think.\n2. Never ship early.\n3. Respond with continue or pivot.", {}),
        ("A) continue\nB) pivot\n\nA) ship\nB) pivot", {"B": "pivot"}),
        ("A) continue\na) ship\nB) pivot", {"B": "pivot"}),
    ],
)
def test_a_prompt_says_which_labels_there_are(prompt: str, labels: dict[str, str]) -> None:
    """Lists of two keys or more, by lines or in a sentence; ambiguous labels are left out."""
    assert offered_labels(prompt, KEYS) == labels


def test_a_label_that_is_a_key_stands_for_that_key() -> None:
    """The keys' own texts go first."""
    keys = ["b", "a"]
    labels = offered_labels("A) b\nB) a", keys)
    assert labels == {}
    assert read_choice("a", keys, labels=labels) == "a"
