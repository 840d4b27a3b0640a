"""Where agents are in every tick, by going through the events of a log one by one."""

from collections import Counter, defaultdict
from typing import Any

CLOSES = ("compose_done", "action_done")


def occupied(events: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """Return how many ticks agents are in each state at their beginning, and at their end."""
    (started,) = (event for event in events if event["event"] == "run.started")
    last = started["ticks_per_round"]
    by_tick = defaultdict(list)
    for event in events:
        if event["event"] == "statechart.transition":
            by_tick[event["round"], event["tick"]].append(event)

    where = {each["agent_id"]: each["state"] for each in events if each["event"] == "agent.joined"}
    begins, ends = Counter[str](), Counter[str]()
    stamps = [(event["round"], event["tick"]) for event in events if event["round"] > 0]
    ticks = {
        (number, tick) for number in range(1, max(stamps)[0] + 1) for tick in range(1, last + 1)
    }
    for moment in sorted(tick for tick in ticks if tick <= max(stamps)):
        begins.update(where.values())
        moves = by_tick[moment]
        closing = [each for each in moves if _closes(each, is_last=moment[1] == last)]
        for move in moves:
            if move not in closing:
                where[move["agent_id"]] = move["to_state"]
        ends.update(where.values())
        for move in closing:
            where[move["agent_id"]] = move["to_state"]

    return begins, ends


def _closes(move: dict[str, Any], *, is_last: bool) -> bool:
    finishes = is_last and move["trigger"] in CLOSES and move["ticks_in_state"] == 0
    return finishes or move["trigger"] == "round_ends"
