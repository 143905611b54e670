"""Equations as MathML, which browsers draw by themselves: no script, no network.

docutils, on which Sphinx stands, translates the TeX.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def inline(writer, node: nodes.math) -> None:
    writer.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def block(writer, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def mathml(node: nodes.Element, as_block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("%s in the equation %s", error, node.astext(), location=node)
        return node.astext()


def setup(app) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
