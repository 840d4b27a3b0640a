"""Policies that are estimated from decisions."""

import json
from collections.abc import Callable, Iterable
from math import log, sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("statsmodels")


from prism.analysis import read_log
from prism.errors import FieldValueError, InputError
from prism.science import Policy, Unidentified, calibrate
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.choosing import CONTRIBUTOR, LURKER, OPTIONS, by_shares, drawn, logged
from tests.kit.later import Later

linear_model = Later("statsmodels.regression.linear_model")
pandas = Later("pandas")
stats = Later("scipy.stats")

Write = Callable[..., Path]

COUNTS = {"lurker": (10, 30, 60), "contributor": (50, 30, 20)}
POINT = ("evaluating", "decides")


def policy_of(write_log: Write, rows: Iterable[Any], model: Any = "markov", **how: Any) -> Policy:
    return calibrate(read_log(write_log(logged(rows))), model, **how)


def said(policy: Policy, what: str) -> list[Unidentified]:
    return [each for each in policy.unidentified if each.what == what]


def test_shares_and_their_standard_errors(write_log: Write) -> None:
    """A cell has the shares of what was chosen, with the errors of a multinomial."""
    policy = policy_of(write_log, by_shares(COUNTS))
    found = policy.look_up(*POINT, OPTIONS, "lurker", {})
    assert found is not None
    assert found.probabilities == (0.1, 0.3, 0.6)
    (cell,) = (each for each in policy.cells if each.group == "lurker")
    assert cell.standard_errors == pytest.approx([sqrt(p * (1 - p) / 100) for p in (0.1, 0.3, 0.6)])


@pytest.mark.slow
def test_errors_clustered_by_agent_are_those_of_statsmodels(write_log: Write) -> None:
    """A share is the mean of a regression on nothing, whose clustered error is the cell's."""
    rows = list(drawn({"lurker": LURKER}, 200, seed=3, agents=17))
    logs = read_log(write_log(logged(rows)))
    (cell, _), ids = calibrate(logs).cells, [row["agent_id"] for row in rows]
    clusters = {"groups": pandas.factorize(pandas.Series(ids))[0]}
    assert cell.agents == 17
    assert cell.clustered_errors is not None
    for option, error in zip(OPTIONS, cell.clustered_errors, strict=True):
        chosen = [float(row["chosen"] == option) for row in rows]
        fitted = linear_model.OLS(chosen, [1.0] * 200).fit(cov_type="cluster", cov_kwds=clusters)
        assert error == pytest.approx(float(fitted.bse[0]))

    alone = [{**row, "agent_id": "only"} for row in rows]
    policy = calibrate(read_log(write_log(logged(alone), "alone.jsonl")))
    assert policy.cells[0].clustered_errors is None
    assert Policy.from_dict(json.loads(policy.to_json())) == policy


def test_the_ratio_test_is_that_of_the_log_likelihoods(write_log: Write) -> None:
    """The test of pooled against grouped shares is twice the difference of log-likelihoods."""
    (test,) = policy_of(write_log, by_shares(COUNTS)).tests
    grouped = sum(n * log(n / 100) for row in COUNTS.values() for n in row)
    pooled = sum(n * log(n / 200) for n in (60, 60, 80))
    assert test.statistic == pytest.approx(2 * (grouped - pooled))
    assert (test.df, test.p) == (2, pytest.approx(stats.chi2.sf(test.statistic, 2)))
    assert test.least_expected == 30


def test_what_was_never_chosen_is_told_with_its_bound(write_log: Write) -> None:
    """An option that nobody chose has the estimate 0 and the exact upper end of its interval."""
    policy = policy_of(write_log, by_shares({"lurker": (0, 40, 60)}))
    (never,) = said(policy, "option")
    assert (never.name, never.n, never.upper) == ("composing", 100, pytest.approx(0.0295, abs=1e-4))


def test_a_small_group_is_not_identified_and_takes_the_pooled_shares(write_log: Write) -> None:
    """A group with too few decisions has no probabilities; look-ups say that all groups answer."""
    policy = policy_of(write_log, by_shares({**COUNTS, "superuser": (3, 2, 0)}))
    (cell,) = said(policy, "cell")
    assert (cell.group, cell.n, cell.reason) == (
        "superuser",
        5,
        "only 5 decisions of the 10 needed",
    )
    found = policy.look_up(*POINT, OPTIONS, "superuser", {})
    assert found is not None
    assert found.basis == "pooled"


def test_other_options_have_no_answer(write_log: Write) -> None:
    """Options that were never offered together are not made up from others."""
    policy = policy_of(write_log, by_shares(COUNTS))
    assert policy.look_up(*POINT, ("composing", "scrolling"), "lurker", {}) is None


def test_fallbacks_are_left_out_and_counted(write_log: Write) -> None:
    """Decisions that nobody made are no choices."""
    rows = list(by_shares(COUNTS))
    fell_back = [{**rows[0], "source": "fallback"}] * 7
    (source,) = policy_of(write_log, [*rows, *fell_back]).sources
    assert (source.decisions, dict(source.left_out)) == (200, {"fallback": 7})


def test_what_a_chart_allows_and_nobody_met_is_told(write_log: Write) -> None:
    """States that nobody decided in, and options that were never offered, are listed."""
    two = ("composing", "scrolling")
    rows = [
        {**row, "options": two, "chosen": two[n % 2]} for n, row in enumerate(by_shares(COUNTS))
    ]
    (never,) = said(policy_of(write_log, rows), "option")
    assert (never.name, never.reason) == ("engaging_like", "was never offered")

    door = state_enum("Door", ["open", "shut", "locked"])
    opened, shut, locked = door
    moves = [Transition("pushed", shut, target) for target in (opened, locked)]
    chart = Statechart(door, moves, initial=shut, decision_states=[shut])
    (state,) = said(policy_of(write_log, by_shares(COUNTS), charts=[chart]), "state")
    assert (state.state, state.event) == ("shut", "pushed")


def test_impossible_arguments_are_refused(write_log: Write) -> None:
    """Another model, a number below 1, and runs without decisions are refused."""
    logs = read_log(write_log(logged(by_shares(COUNTS))))
    with pytest.raises(FieldValueError, match="markov or logit"):
        calibrate(logs, "forest")  # type: ignore[arg-type]
    with pytest.raises(FieldValueError, match="least"):
        calibrate(logs, least=0)
    with pytest.raises(InputError, match="is 'mood', which is not an attribute of the agents"):
        calibrate(logs, by="mood")
    with pytest.raises(InputError, match="hold no decisions"):
        calibrate(read_log(write_log(logged([]))))


@pytest.mark.long
def test_intervals_cover_known_probabilities(write_log: Write) -> None:
    """Of 95 % intervals about as many cover what the decisions were drawn with."""
    shares = {"lurker": LURKER, "contributor": CONTRIBUTOR}
    covered, p_values = 0, []
    for seed in range(60):
        policy = policy_of(write_log, drawn(shares, 400, seed))
        for cell in policy.cells:
            if cell.group is not None and cell.probabilities and cell.standard_errors:
                truth = [shares[cell.group][option] for option in cell.options]
                covered += sum(
                    abs(found - true) <= 1.96 * error
                    for found, true, error in zip(
                        cell.probabilities, truth, cell.standard_errors, strict=True
                    )
                )
                p_values.append(stats.chisquare(cell.counts, [400 * each for each in truth]).pvalue)

    assert 0.91 <= covered / 360 <= 0.98
    assert min(p_values) > 0.01 / len(p_values)


@pytest.mark.long
def test_clustered_intervals_cover_where_agents_have_tendencies(write_log: Write) -> None:
    """With tendencies of their own the clustered errors are right, and the others too small."""
    covered = {"clustered_errors": 0, "standard_errors": 0}
    for seed in range(100):
        random = Random(seed)
        rows = []
        for place in range(60):
            tendency = random.betavariate(1, 1)
            rows += [
                {
                    "agent_id": f"a{place}",
                    "group": "lurker",
                    "chosen": OPTIONS[0 if random.random() < tendency else 2],
                }
                for _ in range(random.randint(1, 12))
            ]

        cell = policy_of(write_log, rows).cells[0]
        assert cell.probabilities is not None
        for name in covered:
            covered[name] += abs(cell.probabilities[0] - 0.5) <= 1.96 * getattr(cell, name)[0]

    assert 88 <= covered["clustered_errors"] <= 99
    assert covered["standard_errors"] < 85
