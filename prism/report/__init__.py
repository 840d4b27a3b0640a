"""A run as one HTML page that works offline, with figures that can be saved for a paper.

``make_report(read_log("runs/first")).html()`` returns the page.

Needs the extra ``report``: ``pip install '.[report]'`` in a checkout.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.report.drawing import FigureFormat
    from prism.report.html import Page, Section
    from prism.report.report import make_report
else:
    __getattr__, __dir__ = lazy_names(__name__, extra="report")

__all__ = ["FigureFormat", "Page", "Section", "make_report"]
