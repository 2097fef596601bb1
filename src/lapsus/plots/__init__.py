"""Style and panels that pages, figures and fits share."""

from lapsus.plots import (
    axes as axes,
    fits as fits,
    numbers as numbers,
    panels as panels,
    style as style,
    subject_fits as subject_fits,
    swap_functions as swap_functions,
)
