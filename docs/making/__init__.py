"""How the site is made: code blocks of a page, a page run from top to bottom, and what MkDocs calls."""
