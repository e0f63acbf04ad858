"""Formulas as inline SVG, drawn by matplotlib when the pages are built.

The standard ``:math:`` role and ``.. math::`` directive then need neither LaTeX nor a script from
elsewhere. matplotlib's mathtext knows the common part of TeX's mathematics; a formula outside of
it is a warning with matplotlib's explanation, and so an error in our build.
"""

import re
from html import escape

from docutils import nodes
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from sphinx.util import logging

logger = logging.getLogger(__name__)

FONT = FontProperties(size=12, math_fontfamily="stix")
# What stands for one em of the surrounding text, whose letters are larger than this font's.
UNIT = 11.0
MARGIN = 0.6
COMMANDS = {
    Path.MOVETO: "M",
    Path.LINETO: "L",
    Path.CURVE3: "Q",
    Path.CURVE4: "C",
    Path.CLOSEPOLY: "Z",
}
# Names of TeX for which mathtext knows only another one.
SYNONYMS = {
    "ge": "geq",
    "le": "leq",
    "ne": "neq",
    "lVert": "Vert",
    "rVert": "Vert",
    "lvert": "vert",
    "rvert": "vert",
    "land": "wedge",
    "lor": "vee",
}
SYNONYM = re.compile(rf"\\({'|'.join(SYNONYMS)})(?![A-Za-z])")
# TeX lets the braces of a single letter or symbol go.
ROOT = re.compile(r"\\sqrt\s*(\\[A-Za-z]+|[A-Za-z0-9])")


def render(tex):
    """Return one line of TeX mathematics as an SVG element on the text's baseline."""
    known = ROOT.sub(r"\\sqrt{\1}", tex)
    known = SYNONYM.sub(lambda match: "\\" + SYNONYMS[match[1]], known)
    text = f"${known}$"
    width, height, descent = text_to_path.get_text_width_height_descent(text, FONT, ismath=True)
    # textpath works at its own fixed size; its metrics come back scaled to the font's.
    scale = FONT.get_size_in_points() / text_to_path.FONT_SCALE
    vertices, codes = text_to_path.get_text_path(FONT, text, ismath=True)
    commands = []
    if len(vertices):
        for points, code in Path(vertices, codes).iter_segments(simplify=False):
            pairs = (points * scale).reshape(-1, 2)
            numbers = " ".join(f"{number:.2f}" for x, y in pairs for number in (x, -y))
            commands.append(COMMANDS[code] + ("" if code == Path.CLOSEPOLY else numbers))
    top = height - descent + MARGIN
    full_height = height + 2 * MARGIN
    return (
        f'<svg class="mathtext" role="img" aria-label="{escape(tex)}"'
        f' viewBox="0 {-top:.2f} {width:.2f} {full_height:.2f}"'
        f' style="width:{width / UNIT:.3f}em;height:{full_height / UNIT:.3f}em;'
        f'vertical-align:{-(descent + MARGIN) / UNIT:.3f}em">'
        f'<path fill="currentColor" d="{"".join(commands)}"/></svg>'
    )


def render_or_warn(tex, node):
    """Return `tex` drawn, or as code with a warning when matplotlib cannot read it."""
    try:
        return render(" ".join(tex.split()))
    except ValueError as error:
        logger.warning("formula %r: %s", tex, error, location=node, type="mathtext")
        return f"<code>{escape(tex)}</code>"


def visit_inline(writer, node):
    """Write a formula within a sentence."""
    writer.body.append(render_or_warn(node.astext(), node))
    raise nodes.SkipNode


def visit_block(writer, node):
    """Write displayed formulas: lines end in a double backslash or at an empty line."""
    lines = [
        line for part in node.astext().split("\n\n") for line in part.split("\\\\") if line.strip()
    ]
    writer.body.append(writer.starttag(node, "div", CLASS="mathtext-display"))
    for line in lines:
        display = line.replace(r"\frac", r"\dfrac")
        writer.body.append(f"<p>{render_or_warn(display, node)}</p>\n")
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer; conf.py chooses it by ``html_math_renderer = "mathtext"``."""
    app.add_html_math_renderer("mathtext", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
