"""The protocol: a model, an explicit policy and a calibrated one, on one seed."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("statsmodels")

from prism.errors import FieldValueError, InputError
from prism.runs import ModelOptions
from prism.science import Policy, Protocol, run_protocol
from prism.social import SocialRun
from prism.testing import Asked
from tests.kit.servers import Serve, chats_of

LIKES = {"composing": 0.1, "engaging_like": 0.8, "scrolling": 0.1}


def liking(asked: Asked) -> str:
    """Like most posts, whoever asks; a prompt gets one answer, in whatever order they arrive."""
    (chosen,) = Random(asked.prompt).choices(asked.options, [LIKES[each] for each in asked.options])
    return chosen


@pytest.mark.slow
def test_a_model_is_compared_with_both_policies(serve: Serve, tmp_path: Path) -> None:
    """A model of other tastes is above its floor against the explicit policy, not its own."""
    server = serve(choose=liking, decision_models=())
    model = ModelOptions("tiny", host=(server.host,), concurrency=8)
    run = SocialRun(agents=60, reasoner=model)
    strategies: Any = ("base", "probabilistic")
    protocol = Protocol(run, 120, strategies)
    results = run_protocol(protocol, tmp_path / "out")

    rows = results.divergence.filter(by="all", strategy="base").to_dicts()
    found = {row["comparison"]: row for row in rows}
    assert (found["reference"]["above"], found["calibrated"]["above"]) == (True, False)
    assert 90 < found["reference"]["n"] <= found["reference"]["n_policy"] == 120
    assert results.speed["run"].to_list() == [
        "reference",
        *("model-base", "policy-base"),
        *("model-probabilistic", "policy-probabilistic"),
    ]
    assert Policy.from_file(tmp_path / "out" / "policy-base.json").sources[0].run == "model-base"
    told = [chat["messages"][-1]["content"] for chat in chats_of(server)]
    assert any("choose with these probabilities:\n- " in text for text in told)
    assert any("probabilities" not in text for text in told)

    before = server.asked
    again = run_protocol(None, tmp_path / "out")
    assert again.divergence.equals(results.divergence)
    assert again.speed.equals(results.speed)
    assert server.asked == before


class StoppedError(Exception):
    """The machine went down."""


def test_a_protocol_that_was_stopped_goes_on(serve: Serve, tmp_path: Path) -> None:
    """Stopped before the model's run, it goes on there; what is complete is not run again."""
    server = serve(choose=lambda asked: asked.options[-1], decision_models=())
    model = ModelOptions("tiny", host=(server.host,), max_calls=20)
    protocol = Protocol(SocialRun(agents=30, reasoner=model), 30)
    whole = run_protocol(protocol, tmp_path / "whole")

    from prism.runs import Observer

    class Stops(Observer):
        """Stops when the second run is about to begin."""

        begun = 0

        def started(self, run: Any) -> None:
            self.begun += 1
            if self.begun == 2:
                raise StoppedError

    with pytest.raises(StoppedError):
        run_protocol(protocol, tmp_path / "out", observer=Stops())

    assert json.loads((tmp_path / "out" / "times.json").read_text()).keys() >= {"reference"}
    assert run_protocol(None, tmp_path / "out").divergence.equals(whole.divergence)

    asked = server.asked
    again = run_protocol(None, tmp_path / "out")
    assert again.speed["run"].to_list() == ["reference", "model-base", "policy-base"]
    assert again.divergence.equals(whole.divergence)
    assert server.asked == asked


def test_what_no_protocol_can_be_is_refused(tmp_path: Path) -> None:
    """It needs a model, known strategies, agents enough, and a folder of its own."""
    run = SocialRun(agents=1, reasoner=ModelOptions("tiny"))
    with pytest.raises(InputError, match="must be a model"):
        Protocol(SocialRun(agents=10))
    with pytest.raises(FieldValueError, match="strategies"):
        Protocol(run, strategies=("bribed",))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds no protocol"):
        run_protocol(None, tmp_path)
    with pytest.raises(InputError, match="take more agents"):
        run_protocol(Protocol(run, 10), tmp_path / "out")
