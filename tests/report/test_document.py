"""The library that draws figures, bundled while logs are read."""

import time

import pytest

from prism.report._document import library


@pytest.mark.slow
def test_other_threads_run_while_the_library_is_bundled() -> None:
    """Bundling takes seconds, in which a log is read and a page answered."""
    library.cache_clear()
    bundle, longest = library(), 0.0
    while not bundle.done():
        # of this process, as others on the machine may hold up both threads
        before = time.process_time()
        time.sleep(0.005)
        longest = max(longest, time.process_time() - before)
    assert "vegaEmbed" in bundle.result()
    assert longest < 0.5
