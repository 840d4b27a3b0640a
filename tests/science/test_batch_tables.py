"""Tables of a batch, made of what its runs say."""

from prism.science._batch_tables import round_rows, table_of


def test_states_stand_together_and_are_zero_in_rounds_without_them() -> None:
    """A chart with regions has other states in each round, and none of them is unknown there."""
    rounds = [
        {"round": 1, "states": {"asleep": 3}, "transitions": 0},
        {"round": 2, "states": {"feed+fresh": 3}, "transitions": 3},
    ]
    table = table_of([*round_rows({"run": "one"}, {}, {"rounds": rounds})])
    assert table.rows(named=True) == [
        {"run": "one", "round": 1, "states.asleep": 3, "states.feed+fresh": 0, "transitions": 0},
        {"run": "one", "round": 2, "states.asleep": 0, "states.feed+fresh": 3, "transitions": 3},
    ]
    assert table.columns[2:4] == ["states.asleep", "states.feed+fresh"]
