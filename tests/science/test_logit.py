"""Logits of choices: against known coefficients, and where there are none."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("statsmodels")

import numpy as np

from prism.analysis import read_log
from prism.errors import InputError
from prism.science import Policy, calibrate, policy_coefficients
from tests.kit.choosing import (
    INTERCEPTS,
    OPTIONS,
    SLOPES,
    by_shares,
    drawn_by_logit,
    logged,
)
from tests.kit.later import Later

optimize = Later("scipy.optimize")
special = Later("scipy.special")

Write = Callable[..., Path]

POINT = ("evaluating", "decides")


def policy_of(write_log: Write, rows: Iterable[Any], **how: Any) -> Policy:
    return calibrate(read_log(write_log(logged(rows))), "logit", **how)


def reasons(policy: Policy, what: str) -> list[str]:
    return [each.reason for each in policy.unidentified if each.what == what]


def log_likelihood(rows: list[dict[str, Any]]) -> float:
    """Return the highest log-likelihood, found by a general optimizer."""
    design = np.array([[1.0, row["group"] == "lurker", row["relevance"]] for row in rows])
    chosen = np.array([OPTIONS.index(row["chosen"]) for row in rows])

    def loss(weights: Any) -> float:
        utilities = np.column_stack([design @ weights.reshape(2, 3).T, np.zeros(len(rows))])
        taken = utilities[np.arange(len(rows)), chosen]
        return float(-(taken - special.logsumexp(utilities, axis=1)).sum())

    return float(-optimize.minimize(loss, np.zeros(6)).fun)


def test_a_logit_reaches_the_highest_likelihood(write_log: Write) -> None:
    """A general optimizer of the likelihood finds nothing better, and probabilities follow it."""
    rows = list(drawn_by_logit(150, seed=1))
    policy = policy_of(write_log, rows)
    (logit,) = policy.logits
    assert logit.log_likelihood == pytest.approx(log_likelihood(rows), abs=1e-3)

    found = policy.look_up(*POINT, OPTIONS, "lurker", {"relevance": 0.5})
    assert found is not None
    assert found.basis == "logit"
    assert sum(found.probabilities) == pytest.approx(1)
    # the shares of a group are met exactly by a logit with an intercept for it
    lurkers = [row for row in rows if row["group"] == "lurker"]
    means = np.mean([logit.probabilities("lurker", [row["relevance"]]) for row in lurkers], axis=0)
    shares = [sum(row["chosen"] == name for row in lurkers) / len(lurkers) for name in OPTIONS]
    assert means == pytest.approx(shares, abs=1e-6)


@pytest.mark.slow
def test_tests_against_intercepts_and_groups(write_log: Write) -> None:
    """The covariates are tested against groups alone, all together against intercepts."""
    tests = policy_of(write_log, drawn_by_logit(150, seed=2)).tests
    by_null = {(test.null, test.alternative): test for test in tests}
    assert by_null["intercepts only", "logit"].df == 4
    assert by_null["by group", "logit"].df == 2
    groups = by_null["all groups alike", "by group"].statistic
    whole = by_null["intercepts only", "logit"].statistic
    assert whole == pytest.approx(groups + by_null["by group", "logit"].statistic)


@pytest.mark.slow
def test_what_an_agent_says_again_and_again_is_no_further_evidence(write_log: Write) -> None:
    """Decisions that are repeated leave clustered errors as they are, and shrink the others."""
    rows = list(drawn_by_logit(150, seed=3))
    ((once,), (often,)) = (policy_of(write_log, rows * times).logits for times in (1, 4))
    assert once.agents == often.agents == 100
    for option, errors in once.clustered_errors.items():
        assert often.clustered_errors[option] == pytest.approx(errors, rel=0.02)
        assert often.standard_errors[option] == pytest.approx(
            np.array(once.standard_errors[option]) / 2
        )


@pytest.mark.slow
def test_the_unit_of_a_covariate_is_no_matter(write_log: Write) -> None:
    """Values that are a million times smaller have coefficients, and errors, that are as larger."""
    rows = list(drawn_by_logit(100, seed=5))
    small = [{**row, "relevance": row["relevance"] / 1e6} for row in rows]
    ((of_rows,), (of_small,)) = (policy_of(write_log, each).logits for each in (rows, small))
    for name in ("coefficients", "standard_errors", "clustered_errors"):
        for option, values in getattr(of_rows, name).items():
            scaled = np.array(values) * [1, 1, 1e6]
            assert getattr(of_small, name)[option] == pytest.approx(scaled, rel=1e-4)

    errors = np.concatenate(list(of_small.standard_errors.values()))
    assert np.sqrt(np.diag(of_small.covariance)) == pytest.approx(errors)


@pytest.mark.slow
def test_separated_choices_have_no_logit(write_log: Write) -> None:
    """A covariate that predicts choices with certainty is told, and shares answer instead."""
    rows = [
        {**row, "relevance": 0.9 if row["chosen"] == "composing" else 0.1}
        for row in by_shares({"lurker": (20, 30, 50), "contributor": (30, 30, 40)})
    ]
    policy = policy_of(write_log, rows)
    assert not policy.logits
    assert "separation" in reasons(policy, "logit")[0]
    found = policy.look_up(*POINT, OPTIONS, "lurker", {"relevance": 0.9})
    assert found is not None
    assert found.basis == "markov"


@pytest.mark.slow
def test_what_a_logit_cannot_use_is_told(write_log: Write) -> None:
    """Constant and unknown covariates, and groups that never chose an option, are left out."""
    rows = [
        {**row, "relevance": 0.5}
        for row in by_shares({"lurker": (20, 30, 50), "contributor": (0, 30, 40)})
    ]
    policy = policy_of(write_log, rows, covariates=("relevance", "likes"))
    assert reasons(policy, "covariate") == ["does not vary", "has no number in the log"]
    (group,) = (each for each in policy.unidentified if each.what == "group")
    assert (group.group, group.reason.partition(":")[0]) == ("contributor", "never chose composing")
    (logit,) = policy.logits
    assert (logit.groups, logit.covariates) == (("lurker",), ())


SHARES = {"lurker": (6, 9, 15), "contributor": (9, 9, 12)}
BY_GROUP = {"lurker": 0.1, "contributor": 0.9}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            [{**row, "relevance": BY_GROUP[row["group"]]} for row in by_shares(SHARES)],
            "groups and covariates cannot be told apart (the design has not full rank)",
        ),
        (
            list(by_shares({"lurker": (0, 6, 9), "contributor": (6, 0, 8)})),
            "no group has chosen every option",
        ),
        (list(by_shares({"lurker": (0, 12, 0)})), "one option is chosen"),
    ],
)
def test_choices_without_a_logit_say_why(write_log: Write, rows: list[Any], reason: str) -> None:
    """Where no logit has a unique finite maximum, there is none, and the reason is told."""
    policy = policy_of(write_log, rows)
    assert not policy.logits
    assert reasons(policy, "logit") == [reason]
    assert policy_coefficients(policy).is_empty()


@pytest.mark.parametrize("agents", [lambda row: row["group"], lambda row: row["agent_id"]])
def test_agents_that_are_few_or_alike_have_no_clustered_errors(
    write_log: Write, agents: Callable[[Any], str]
) -> None:
    """Neither two agents, nor ten that choose alike, have errors clustered by agent."""
    rows = [{**row, "agent_id": agents(row)} for row in by_shares({"lurker": (10, 30, 20)})]
    policy = policy_of(write_log, rows)
    (logit,), table = policy.logits, policy_coefficients(policy)
    assert logit.clustered_errors == {}
    assert table["clustered_error"].to_list() == [None, None]
    assert table["term"].to_list() == ["intercept (lurker)"] * 2
    assert (table["z"] == table["coefficient"] / table["standard_error"]).all()
    # the error of a log odds, log(10 / 30)
    assert table["standard_error"][0] == pytest.approx((1 / 10 + 1 / 30) ** 0.5)


def test_what_is_no_number_is_unknown(write_log: Write) -> None:
    """Text and infinite numbers are unknown; truth values of a context count as 1 and 0."""
    events = list(logged(by_shares(SHARES)))
    for number, event in enumerate(events):
        if event["event"] == "reasoner.decision":
            whims = ["inf", 1, 2, 4]
            event["context"] = {
                "it's late": number % 3 == 0,
                "whim": whims[number % 4],
                "mood": "fair",
            }

    logs = read_log(write_log(events))
    policy = calibrate(logs, "logit", covariates=("it's late", "mood", "whim", "whim"))
    (logit,) = policy.logits
    assert logit.covariates == ("it's late", "whim")
    assert logit.n == 45
    assert reasons(policy, "covariate") == [
        "has no number in the log",
        "is unknown in some decisions, which the logit leaves out",
    ]
    with pytest.raises(InputError, match="is 'chosen', which names a part of every decision"):
        calibrate(logs, "logit", covariates=("chosen",))


@pytest.mark.long
def test_known_coefficients_are_recovered(write_log: Write) -> None:
    """Over seeds 95 % intervals cover the coefficients that the choices were drawn with."""
    order = ("contributor", "lurker")
    truth = {
        option: (
            INTERCEPTS[order[0]][place],
            INTERCEPTS[order[1]][place] - INTERCEPTS[order[0]][place],
            SLOPES[place],
        )
        for place, option in enumerate(OPTIONS[:2])
    }
    covered = tried = 0
    for seed in range(40):
        (logit,) = policy_of(write_log, drawn_by_logit(1500, seed)).logits
        weights = {
            logit.base: np.zeros(3),
            **{k: np.array(v) for k, v in logit.coefficients.items()},
        }
        names = [name for name in OPTIONS if name != logit.base]
        covariance = np.array(logit.covariance)
        size = len(covariance) // len(names)
        for option, true in truth.items():
            # the base is whatever was chosen most; differences do not depend on it
            row = np.zeros(len(covariance))
            for name, sign in ((option, 1), ("scrolling", -1)):
                if name != logit.base:
                    row[list(logit.coefficients).index(name) * size] = sign
            for term in range(size):
                place = np.roll(row, term)
                found = weights[option][term] - weights["scrolling"][term]
                error = float(np.sqrt(place @ covariance @ place))
                covered += abs(found - true[term]) <= 1.96 * error
                tried += 1

    assert 0.91 <= covered / tried <= 0.985
