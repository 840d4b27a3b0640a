"""What a text call is, how its text is read, and how it is announced."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prism.reasoner._spending import COST_KEYS
from prism.reasoner._texts import read_as
from prism.statechart import BaseWriter, Cost, TextCall, Written

COST = Cost(0.5, "tiny", "http://one", 2, 10, 4, queue_seconds=0.2, request_seconds=0.3)
COMMON = {"agent_id": "ada", "prompt_hash": sha256(b"?").hexdigest()[:16]}


class Fixed(BaseWriter):
    """A writer that gives what it was made with, in the order of the calls."""

    def __init__(self, *answers: Written, logger: Any = None) -> None:
        super().__init__(logger)
        self.answers = list(answers)

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        return [self.answers.pop(0) for _ in calls]


def test_what_a_call_cannot_read_is_a_failure() -> None:
    """A text that the call refuses is a failure that keeps the text and says why."""
    call = TextCall("ada", "k", "?", read=json.loads)
    assert read_as(call, "[1]", "model") == Written("[1]", "model")
    assert read_as(call, "[1]", "model").value == [1]
    failed = read_as(call, "{", "model", COST)
    assert (failed.text, failed.source, failed.value, failed.cost) == ("{", "failed", None, COST)
    assert failed.has_failed
    assert str(failed.reason).startswith("the text cannot be used: Expecting property name")


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_every_text_can_be_logged(text: str) -> None:
    """What a text has of half characters is replaced, all else is kept, so that a log holds it."""
    kept = read_as(TextCall("ada", "k", "?"), text, "model").text
    assert kept is not None
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert kept == whole
    assert kept.encode().decode() == kept


async def test_texts_are_announced_in_the_order_of_the_calls(logger: Any, capture: Any) -> None:
    """Each text is one event, in the order of the calls; a failed one is a warning."""
    writer = Fixed(
        Written("one", "script"),
        Written(None, "failed", reason="E: gone", cost=COST),
        Written("three", "cache"),
        logger=logger,
    )
    await writer.write_many([TextCall("ada", key, "?") for key in "abc"])
    plain = {**COMMON, "event": "text.written", "reason": None}
    cost = {name: getattr(COST, name) for name in (*COST_KEYS, "queue_seconds", "request_seconds")}
    assert capture.entries == [
        {**plain, "key": "a", "text": "one", "source": "script", "log_level": "info"},
        {
            **plain,
            "key": "b",
            "text": None,
            "source": "failed",
            "reason": "E: gone",
            "log_level": "warning",
            **cost,
        },
        {**plain, "key": "c", "text": "three", "source": "cache", "log_level": "info"},
    ]
