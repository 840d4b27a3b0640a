"""Who takes part, and how unequally."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from tests.kit import make
from tests.kit.logs import AGENTS, LogOf


def gini(counts: list[int]) -> float:
    """Return half the mean absolute difference over all pairs, divided by the mean."""
    differences = sum(abs(one - other) for one in counts for other in counts)
    return differences / (2 * len(counts) * sum(counts))


def top_share(counts: list[int], share: float) -> float:
    """Return what belongs to a share of the agents, of whom the last counts in part."""
    whole, part = divmod(share * len(counts), 1)
    ranked = sorted(counts, reverse=True)
    return (sum(ranked[: int(whole)]) + part * ranked[int(whole)]) / sum(counts)


@pytest.mark.parametrize("number", [1, 3, None])
@pytest.mark.sampled(3)
def test_shares_are_those_of_the_events(
    number: int | None, folder: Path, events: list[dict[str, Any]]
) -> None:
    """Counts and shares of a round and of all rounds are those counted plainly."""
    here = [each for each in events if each["round"] != 0 and number in (None, each["round"])]
    posts = [each for each in here if each["event"] == "post.published"]
    wrote = Counter(each["agent_id"] for each in posts)
    created = {each["agent_id"] for each in posts if each["kind"] == "post"}
    liked = {each["agent_id"] for each in here if each["event"] == "post.liked"}
    counts = [*wrote.values(), *[0] * (AGENTS - len(wrote))]
    top_1, top_10 = (top_share(counts, share) for share in (0.01, 0.1))
    (row,) = (row for row in read_log(folder).rows("participation") if row["round"] == number)
    assert row == pytest.approx(
        {
            **{"round": number, "agents": AGENTS, "written": wrote.total()},
            **{"silent": 1 - len(wrote) / AGENTS, "creating": len(created) / AGENTS},
            **{"writing": (len(wrote) - len(created)) / AGENTS, "liking": len(liked) / AGENTS},
            **{"top_1": top_1, "next_9": top_10 - top_1, "top_10": top_10, "other_90": 1 - top_10},
            "gini": gini(counts),
        }
    )


def test_a_round_in_which_nobody_writes_has_no_shares(log_of: LogOf) -> None:
    """Everybody who is there is silent, and nothing is nobody's; opening posts are from before."""
    lines = [
        make.started(),
        *(make.joined("x"), make.joined("y")),
        make.post("x", "p0", round=0, tick=0),
        make.event("agent.left", agent_id="y", state="idle", tick=3),
        make.event("round.ended", round=1, tick=3),
        make.post("x", "p1", round=2),
    ]
    columns = "round, agents, silent, creating, written, top_1, gini"
    assert log_of(lines).sql(f"select {columns} from participation").fetchall() == [
        (1, 2, 1.0, 0.0, 0, None, None),
        (2, 1, 0.0, 1.0, 1, 0.01, 0.0),
        (None, 2, 0.5, 0.5, 1, 0.02, 0.5),
    ]
