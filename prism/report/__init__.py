"""A run as a page: ``make_report(logs).html()`` is one file that works offline; figures can be saved for papers."""

from prism.errors import MissingExtraError

try:
    import altair as _altair  # noqa: F401
    import jinja2 as _jinja2  # noqa: F401
    import vl_convert as _vl_convert  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name not in ("altair", "jinja2", "vl_convert"):
        raise
    raise MissingExtraError("analysis", _error.name) from None

from prism.report._page import FigureFormat, Report, make_report

__all__ = ["FigureFormat", "Report", "make_report"]
