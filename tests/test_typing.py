"""What type checkers say to users: tests/typing holds examples that are checked and never run.

The examples state the types that they expect, by ``assert_type``, and mark the errors that they
expect, by ``type: ignore[code]``; a mark without an error is an error itself. ``.ci/run`` has
pyright check the same files.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "tests" / "typing"


def check(*paths: Path) -> list[str]:
    """Have mypy check files as strictly as it can; give what it complains of."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, paths)]
    environment = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert not done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


def test_examples_have_the_types_and_errors_that_they_state() -> None:
    """Every stated type holds, and every marked line, and no other, is an error."""
    assert check(*EXAMPLES.glob("*.py")) == []


def test_errors_are_found_at_all(tmp_path: Path) -> None:
    """Without their marks the lines of the wrong examples, and no others, are errors."""
    text = (EXAMPLES / "wrong.py").read_text(encoding="utf-8")
    unmarked = tmp_path / "unmarked.py"
    unmarked.write_text(re.sub(r"  # type: ignore\[.*?\]", "", text), encoding="utf-8")
    found = check(unmarked)
    lines = {int(line.split(":")[1]) for line in found}
    assert lines == {
        number for number, line in enumerate(text.splitlines(), 1) if "# type: ignore[" in line
    }
    assert any(
        '"guard" to "Transition" has incompatible type "Callable[[Walker], bool]"' in line
        for line in found
    )


def test_every_room_is_shown() -> None:
    """The examples import from every room that is a library."""
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py"))
    rooms = {path.parent.name for path in (ROOT / "prism").glob("*/__init__.py")} - {"cli"}
    assert {room for room in rooms if f"prism.{room}" not in text} == set()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_state_something(path: Path) -> None:
    """Every file of examples states types or errors."""
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(r"assert_type\(|# type: ignore\[", text)) >= 5
