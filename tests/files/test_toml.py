"""Reading TOML with the lines of its keys."""

from pathlib import Path

import pytest

from prism.errors import InputError
from prism.files._toml import TomlFile

TEXT = """name = "a"

[[arm]]
name = "one"
  [[arm.treatment]]
  kind = "likes"

  [[arm.treatment]]
  kind = "remove"
[[arm]]
name = "two"
where.age = 3
[vary]
rate = [
  0.1,
  0.2,
]
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("name",), 1),
        (("arm", 0), 3),
        (("arm", 0, "treatment", 1, "kind"), 9),
        (("arm", 1, "name"), 11),
        (("arm", 1, "where", "age"), 12),
        (("arm", 1, "treatment"), 10),
        (("vary", "rate"), 14),
        (("vary", "missing"), 13),
    ],
)
def test_a_key_has_its_line(keys: tuple[str | int, ...], line: int) -> None:
    """Keys and tables are found, also in arrays of tables; what is missing has its table's line."""
    assert TomlFile(Path("plan.toml"), TEXT).line(keys) == line


def test_an_error_names_file_line_and_key() -> None:
    """Places in arrays are told by the line alone."""
    error = TomlFile(Path("plan.toml"), TEXT).error("is wrong", ("arm", 0, "treatment", 0, "kind"))
    assert str(error) == "plan.toml, line 6, field 'arm.treatment.kind': is wrong"


def test_what_is_no_toml_is_refused_with_its_line() -> None:
    """The line is that of the parser."""
    with pytest.raises(InputError, match=r"plan.toml, line 2: is not valid TOML"):
        TomlFile(Path("plan.toml"), "a = 1\nb = \n")
