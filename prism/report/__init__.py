"""A run as one HTML page that works offline, with figures that can be saved for a paper.

``make_report(read_log("runs/first")).html()`` returns the page.

Needs the extra ``report``: ``pip install '.[report]'`` in a checkout.
"""

from prism.errors import MissingExtraError

try:
    import altair as _altair  # noqa: F401
    import markupsafe as _markupsafe  # noqa: F401
    import vl_convert as _vl_convert  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name not in ("altair", "markupsafe", "vl_convert"):
        raise
    raise MissingExtraError("report", _error.name) from None

from prism.report._drawing import FigureFormat
from prism.report._html import Page, Section
from prism.report._report import make_report

__all__ = ["FigureFormat", "Page", "Section", "make_report"]
