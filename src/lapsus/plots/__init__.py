"""Style and panels that pages, figures and fits share."""

from lapsus.plots import axes, fits, gallery, mechanism, numbers, panels, style

__all__ = ["axes", "fits", "gallery", "mechanism", "numbers", "panels", "style"]
