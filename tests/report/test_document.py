"""The library that draws figures, which a page contains."""

from pathlib import Path

import pytest

from prism.report import Page, Section


@pytest.mark.slow
def test_the_library_is_bundled_once_on_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache saves the seconds of bundling."""
    from prism.report._html import library

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library.cache_clear()
    try:
        first = Page("A page", [Section("Part", rows=[{"a": 1}])]).html()
        assert "vegaEmbed" in first
        monkeypatch.setattr("vl_convert.javascript_bundle", None)
        library.cache_clear()
        assert Page("A page", [Section("Part", rows=[{"a": 1}])]).html() == first
    finally:
        library.cache_clear()
