"""What our docstrings need before numpydoc reads them.

* Names that end in an underscore, as in ``shape (n_features_in_,)``, are not taken for hyperlinks.
* References in docstrings inherited from scikit-learn point into its manual: they become text.
"""

import re

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<type>.*)$", re.MULTILINE)
FINAL_UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")
REFERENCE = re.compile(r":ref:`(?P<text>[^`<]+?)(?:\s*<[^`>]*>)?`")


def prepare(app, what, name, obj, options, lines):
    """Rewrite the docstring `lines` in place."""
    text = ENTRY.sub(escape_entry, "\n".join(lines))
    if (getattr(obj, "__module__", None) or "").startswith("sklearn."):
        text = REFERENCE.sub(lambda match: match["text"], text)
    lines[:] = text.split("\n")


def escape_entry(match):
    """Return the first line of a parameter or attribute with its underscores escaped.

    numpydoc escapes the last name itself.
    """
    names = match["names"].replace("_,", r"\_,")
    return names + " : " + FINAL_UNDERSCORE.sub(r"\\_", match["type"])


def setup(app):
    """Connect before numpydoc, whose handler has the default priority of 500."""
    app.connect("autodoc-process-docstring", prepare, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
