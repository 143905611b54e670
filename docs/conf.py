"""Documentation, by Sphinx: `make docs`, where every warning is an error."""

import inspect
import sys
from pathlib import Path

import keras

import keras_gdrn

project = "keras_gdrn"
author = "the keras_gdrn authors"
copyright = "2026, the keras_gdrn authors"
release = version = keras_gdrn.__version__

sys.path.insert(0, str(Path(__file__).parent))  # mathml.py
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
extensions += ["sphinx_copybutton", "sphinx_inline_tabs"]
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "keras_gdrn"
html_static_path = ["_static"]
html_css_files = ["custom.css"]

# Docstrings are written as Keras' are: code between single backticks.
default_role = "code"
napoleon_custom_sections = ["Source", "Input shape", "Output shape"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_inherit_docstrings = False  # Keras' own methods are documented there
autodoc_default_options = {"members": True}


def signature_of_init(app, what, name, obj, options, signature, returns):
    """A Keras layer's own: the class as Keras wraps it takes `*args, **kwargs`."""
    if what == "class" and issubclass(obj, keras.layers.Layer):
        own = inspect.signature(obj.__init__)
        parameters = list(own.parameters.values())[1:]
        return str(own.replace(parameters=parameters)), returns
    return None


def setup(app):
    app.connect("autodoc-process-signature", signature_of_init)
