"""Settings of the documentation site: `make docs` builds it with Sphinx from the Markdown pages of this repository.

The source folder is the root of the repository. README.md and the pages beside it are therefore pages of the site, and
a relative link has the same target on the site as in the repository. docs/index.md has the navigation (decision 0055).
"""

from pygments.lexers.templates import SqlJinjaLexer
from sphinx.application import Sphinx

project = "dbt-tablestore"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
# folders without pages, which Sphinx need not search
exclude_patterns = [".*", "build", "dist", "tests", "integration_tests", "tablestore_*", "dbt", "benchmarks"]

# a missing page, file or heading is a warning, and `make docs` turns warnings into errors
myst_heading_anchors = 4

html_theme = "furo"
html_title = "dbt-tablestore"
html_extra_path = ["site_root"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
html_theme_options = {"top_of_page_buttons": []}


def setup(app: Sphinx) -> None:
    """Models are SQL with Jinja: color both."""
    app.add_lexer("sql", SqlJinjaLexer)
