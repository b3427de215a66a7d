"""The documentation site: one Sphinx build, without a network, warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

import slotkern

HERE = Path(__file__).parent
#: The address of the sources: a placeholder, defined only here.
REPOSITORY = "https://example.org/slotkern"
sys.path.insert(0, str(HERE))  # the extensions of this folder

project = "slotkern"
author = "the slotkern developers"
project_copyright = "the slotkern developers, BSD-3-Clause"
release = version = slotkern.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "site_parts",
    "machine_pages",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["_build", "_templates", "gallery/**/*.ipynb", "gallery/**/*.zip"]
exclude_patterns += ["**/sg_execution_times.rst", "sg_execution_times.rst"]
nitpicky = True
default_role = "code"  # names of slotkern become links: site_parts.py
add_module_names = False
toc_object_entries_show_parents = "hide"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types are in the sections Parameters and Returns
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/",
    "abort_on_example_error": True,
    "thumbnail_size": (420, 240),
    "image_scrapers": ("site_parts.figures",),
    "ignore_repr_types": r"slotkern\.plotting\.picture|matplotlib",
    "reset_modules": ("site_parts.one_style",),
    "doc_module": ("slotkern",),
    "backreferences_dir": "reference/examples",
    "inspect_global_variables": True,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "slotkern"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo-light.svg",
        "image_dark": "_static/logo-dark.svg",
        "alt_text": "slotkern",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "icon_links": [
        {
            "name": "Repository",
            "url": REPOSITORY,
            "icon": "fa-solid fa-code-branch",
            "type": "fontawesome",
        }
    ],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "start": [], "howto": []}
