"""What the tokens of a run cost."""

from typing import Any

import pytest

from prism import Run
from prism.llm import Model
from prism.runs import WriterOptions
from prism.runs._prices import prices_of, with_money
from prism.runs._running import models_of
from prism.social import Feed
from prism.testing import FakeOllama

COSTS = {"answers": 3, "calls": 4, "input_tokens": 3_000, "output_tokens": 500}


def test_money_is_told_where_prices_are_known() -> None:
    """Each model has what its tokens cost; one without a price has none."""
    found = with_money({"a": COSTS, "b": COSTS}, {"a": Model("a", price_in=2, price_out=10)})
    assert found == {"a": {**COSTS, "money": 0.011}, "b": COSTS}


def test_tokens_that_nobody_counted_are_not_free() -> None:
    """A server that tells no tokens leaves the money unknown."""
    uncounted = {**COSTS, "input_tokens": 0, "output_tokens": 0}
    assert "money" not in with_money({"a": uncounted}, {"a": Model("a", price_in=2)})["a"]


@pytest.mark.parametrize(
    ("run", "priced"),
    [
        (Run(Feed, 5, model=Model("a", price_in=1)), {"a"}),
        (Run(Feed, 5, model="a"), set()),
        (Run(Feed, 5, model=Model("a", price_in=1), writer=WriterOptions("b")), {"a"}),
        (Run(Feed, 5, writer=WriterOptions(Model("b", price_out=1))), {"b"}),
        (
            Run(
                Feed,
                5,
                model=Model("a", price_in=1),
                treatments=["model=b@2"],
            ),
            {"a"},
        ),
    ],
)
def test_the_models_of_a_run_have_their_prices(run: Any, priced: set[str]) -> None:
    """Whoever decides or writes counts; one name at two prices has none."""
    assert set(prices_of(models_of(run))) == priced


def test_a_run_says_what_it_has_spent(tmp_path: Any) -> None:
    """The summary has the money in all and by model; what fell back is no answer."""
    with FakeOllama(choose=lambda *_: "nowhere") as server:
        model = Model("llama3.2", server.host, price_in=1, stop_at_fallbacks="never")
        spent = Run(Feed, 3, rounds=1, model=model).keep(tmp_path / "run").summary["spent"]

    of_model = spent["by_model"]["llama3.2"]
    assert of_model["answers"] == 0 < of_model["calls"] == spent["calls"]
    assert spent["money"] == of_model["money"] == of_model["input_tokens"] / 1e6
