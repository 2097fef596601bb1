"""Sphinx's settings; docs/making/build_site.py calls it."""

project = "lapsus"
author = copyright = "The lapsus developers"
extensions = ["myst_parser"]
exclude_patterns = ["files/**"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
pygments_style = "default"
html_theme = "pydata_sphinx_theme"
html_title = "lapsus"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    # Toggles of folded entries have no name for screen readers.
    "collapse_navigation": True,
}
