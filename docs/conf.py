"""Set-up of the documentation's site, for Sphinx: ``sphinx-build -W --keep-going docs build/site``.

The pages are plain Markdown. The reference is made from the docstrings, that of the command line
from the command, and those of events and of the feed's parameters from the code. Pictures are made
by running what they show, for which the picture of the viewer needs Chromium.
"""

import gc
import sys
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import prism

sys.path.insert(0, str(Path(__file__).parent))
from command_line import command_line
from events import tables
from parameters import written
from pictures import make_outdated
from rooms import ROOMS, is_at_home, modules_below, offered, page

# the trees of all pages stay until the end: looking through them for garbage takes a quarter
gc.set_threshold(100_000, 20, 100)

project = "prism"
version = release = prism.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "index"
default_role = "py:obj"

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# a reader is told the type; the range is in the words beside it
autodoc_type_aliases = {"_Number": "int", "_Text": "str", "_KeyPrefix": "str"}
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
nitpicky = True
# types may be foreign or private; names in prose may not
nitpick_ignore_regex = [
    (r"py:(class|data|exc)", r".*"),
    (r"py:obj", r"ConfigDict|typing\.Literal.*|prism\.files\.declarations\._?ItemT"),
]
# a type in a signature may have the name of another room's
suppress_warnings = ["ref.python"]
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"prism {version}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_copyright = False
html_show_sphinx = False
# what a button copies is what can be typed: no prompts, and no output of sessions
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "tango"
pygments_dark_style = "monokai"


def add_made(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Write into a page what is made from the code."""
    if docname == "reference/command-line":
        source[0] += command_line()
    elif docname == "reference/events":
        source[0] += tables()
    elif docname == "reference/feed-parameters":
        source[0] = written(source[0])
    elif (name := docname.partition("reference/")[2]) in ROOMS:
        source[0] += page(name)


@cache
def public_paths() -> dict[str, str]:
    """Return the path under which a name is documented, by its bare name and by its module."""
    paths = {}
    rooms = [f"prism.{name}" for name in ROOMS]
    parts = [part for room in rooms for part in modules_below(room)]
    # a room comes last, so that its own path counts where a part of it has the name, too
    for room in map(import_module, [*parts, *rooms]):
        for name in filter(partial(is_at_home, room), offered(room)):
            path, defined = f"{room.__name__}.{name}", getattr(room, name)
            paths[name] = paths[f"{getattr(defined, '__module__', room.__name__)}.{name}"] = path
    return paths


def link_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contents: Element
) -> Element | None:
    """Let docstrings name what other rooms offer as code does that has imported it."""
    if node.get("refdomain") != "py":
        return None
    paths = public_paths()
    name, dot, attribute = node["reftarget"].partition(".")
    path = paths.get(node["reftarget"]) or (
        paths[name] + dot + attribute if name in paths else None
    )
    python = env.get_domain("py")
    found = path and python.resolve_xref(
        env, node["refdoc"], app.builder, "obj", path, node, contents
    )
    return found or None


_NAVIGATIONS: dict[tuple[int, str], str] = {}


def share_navigation(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Element | None
) -> None:
    """Make the navigation of pages of source code, which are in none, once for each depth."""
    if not page.startswith("_modules/"):
        return
    make = context["toctree"]

    def toctree(**options: Any) -> str:
        key = (page.count("/"), repr(options))
        if key not in _NAVIGATIONS:
            _NAVIGATIONS[key] = make(**options)
        return _NAVIGATIONS[key]

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("builder-inited", lambda _: make_outdated())
    # before the theme draws the navigation
    app.connect("html-page-context", share_navigation, priority=400)
    app.connect("source-read", add_made)
    app.connect("missing-reference", link_public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
