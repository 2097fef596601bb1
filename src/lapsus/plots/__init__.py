"""Style and panels that pages, figures and fits share."""
