"""Files of parameters, of the feed and of other worlds."""

from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.examples import Rumour
from prism.social import Feed
from prism.worlds._fields import read_parameter_file

WRITTEN = {
    "right.toml": 'friends = 8\ntiring = "0.5"\n',
    "right.json": '{"friends": 8, "tiring": 0.5}',
    "right.yaml": "friends: 8\ntiring: 0.5\n",
    "right.txt": "friends = 8\ntiring = 0.5\n",
}


@pytest.mark.parametrize("name", WRITTEN)
def test_parameters_are_read_from_any_language(name: str, tmp_path: Path) -> None:
    """TOML, JSON and YAML give the same parameters; another ending is read as TOML."""
    path = tmp_path / name
    path.write_text(WRITTEN[name])
    found = read_parameter_file(path, Rumour)
    assert (found["friends"], float(found["tiring"])) == (8, 0.5)


@pytest.mark.parametrize(
    ("name", "text", "cls", "problems"),
    [
        (
            "wrong.toml",
            'friends = 8\ntirng = 1\nrewired = "x"\n',
            Rumour,
            [": tirng: Rumour has no parameter 'tirng'", ": rewired: Rumour.rewired: "],
        ),
        (
            "wrong.json",
            '{\n"feed_length": 0,\n"feeed": "random",\n"most_chance": 2}',
            Feed,
            [
                ": feed_length: Feed.feed_length: Input should be",
                ": feeed: Feed has no parameter 'feeed'",
                ": most_chance: Feed.most_chance: Input should be",
            ],
        ),
        ("wrong.json", "[8]", Rumour, ["must map names of parameters to values"]),
    ],
)
def test_all_that_is_wrong_in_a_file_is_told_with_its_key(
    name: str, text: str, cls: Any, problems: list[str], tmp_path: Path
) -> None:
    """Every misspelt name and wrong value is listed with its key."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_parameter_file(path, cls)
    assert [problem for problem in problems if problem not in str(refused.value)] == []
