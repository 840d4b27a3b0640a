"""The scripts of a page: the library that draws figures, bundled while logs are read."""

import time
from pathlib import Path

import pytest

from prism.report._html import library


@pytest.mark.slow
def test_other_threads_run_while_the_library_is_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bundling takes seconds, in which a log is read and a page answered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.cache_clear()
    bundle, longest = library(), 0.0
    while not bundle.done():
        # of this process, as others on the machine may hold up both threads
        before = time.process_time()
        time.sleep(0.005)
        longest = max(longest, time.process_time() - before)
    assert "vegaEmbed" in bundle.result()
    assert longest < 0.5


@pytest.mark.slow
def test_the_library_is_bundled_once_and_anew_if_it_was_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache saves the seconds of bundling; what is not as it was written is not used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.cache_clear()
    bundle = library().result()
    (kept,) = (tmp_path / "prism" / "figures").iterdir()
    monkeypatch.setattr("subprocess.run", None)
    library.cache_clear()
    assert library().result() == bundle
    kept.write_bytes(kept.read_bytes() + b"alert()")
    library.cache_clear()
    with pytest.raises(TypeError):
        library().result()
    library.cache_clear()
