"""Types as users see them: the examples in tests/typing are checked and never run.

They state the types that they expect with ``assert_type``, and mark the errors that they expect
with ``type: ignore[code]``; a mark without an error is an error. ``.ci/run`` checks the same files
with pyright.
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
    """Run mypy strictly on files, and return the lines with its errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, paths)]
    environment = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert not done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


@pytest.mark.slow
def test_examples_have_the_types_and_errors_that_they_state(tmp_path: Path) -> None:
    """Every stated type holds; the marked lines, and no others, are errors without the marks."""
    text = (EXAMPLES / "wrong.py").read_text(encoding="utf-8")
    unmarked = tmp_path / "unmarked.py"
    unmarked.write_text(re.sub(r"  # type: ignore\[.*?\]", "", text), encoding="utf-8")

    # one run of mypy for both, since its start takes most of the time
    found = check(*EXAMPLES.glob("*.py"), unmarked)
    wrong = [line for line in found if line.partition(":")[0].endswith(unmarked.name)]
    assert [line for line in found if line not in wrong] == []

    marked = [
        number for number, line in enumerate(text.splitlines(), 1) if "# type: ignore[" in line
    ]
    assert sorted({int(line.split(":")[1]) for line in wrong}) == marked
    problem = '"guard" to "Transition" has incompatible type "Callable[[Walker], bool]"'
    assert any(problem in line for line in wrong)
