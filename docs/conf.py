"""Sphinx configuration of the site: `make docs` builds docs/ into site/."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _site.objects import PACKAGES

from trunkline import __version__

project = "Trunkline"
author = "the Trunkline authors"
release = __version__
html_title = project

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "_site.reference",
    "_site.search",
    "_site.pages",
]
exclude_patterns = ["_site"]
# Dashes alone: quotes in prose are often quotes of code.
smartquotes_action = "D"
templates_path = ["_site/templates"]

# Markdown as a forge shows it. HTML in a page is shown as text.
myst_enable_extensions = ["colon_fence", "fieldlist"]
myst_heading_anchors = 4
myst_disable_syntax = ["html_block", "html_inline"]

# The reference: one page per package, in docs/reference/.
api_packages = PACKAGES
add_module_names = False
maximum_signature_line_length = 68
toc_object_entries_show_parents = "hide"

html_theme = "furo"
pygments_dark_style = "github-dark"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_js_files = [("search.js", {"defer": ""})]
html_favicon = "_site/static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_domain_indices = False
html_use_index = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_additional_pages = {"search": "search.html"}
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#0b5d57",
        "color-brand-content": "#0b6b64",
        "color-brand-visited": "#0b6b64",
        "color-api-name": "#0b5d57",
        "color-api-pre-name": "#5a6b69",
    },
    "dark_css_variables": {
        "color-brand-primary": "#5cc8bd",
        "color-brand-content": "#5cc8bd",
        "color-brand-visited": "#5cc8bd",
        "color-api-name": "#7adccf",
        "color-api-pre-name": "#8fa3a0",
    },
}

# Of a console block only what is typed is copied.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
