"""Tests of keras_gdrn; packages, so that helpers are imported by their full name."""
