"""What our docstrings need before numpydoc reads them.

* The section **Privacy**, which numpydoc does not know, becomes a box above the parameters.
* Names that end in an underscore, as in ``shape (n_features_in_,)``, are not taken for hyperlinks.
* References in docstrings inherited from scikit-learn point into its manual: they become text.
"""

import re

HEADING = re.compile(r"^(?P<title>\S.*)\n-{3,}\s*$", re.MULTILINE)
ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<type>.*)$", re.MULTILINE)
FINAL_UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")
REFERENCE = re.compile(r":ref:`(?P<text>[^`<]+?)(?:\s*<[^`>]*>)?`")


def prepare(app, what, name, obj, options, lines):
    """Rewrite the docstring `lines` in place."""
    text = move_privacy_section("\n".join(lines))
    text = ENTRY.sub(escape_entry, text)
    if (getattr(obj, "__module__", None) or "").startswith("sklearn."):
        text = REFERENCE.sub(lambda match: match["text"], text)
    lines[:] = text.split("\n")


def move_privacy_section(text):
    """Return `text` with its section Privacy as an admonition before the first section."""
    headings = list(HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=False):
        if heading["title"].strip() == "Privacy":
            body = text[heading.end() : end].strip("\n").split("\n")
            rest = text[: heading.start()] + text[end:]
            place = headings[0].start()
            box = [".. admonition:: Privacy", "", *(f"   {line}" if line else "" for line in body)]
            return rest[:place] + "\n".join(["", *box, "", ""]) + rest[place:]
    return text


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
