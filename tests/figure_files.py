"""Is there a figure in the files?"""

from pathlib import Path

from matplotlib import pyplot as plt


def check_figure(folder: Path, name: str) -> None:
    """NAME.pdf is one whole page, and NAME.png has ink in every part of it: a panel that was not drawn leaves a hole
    that is blank in all its columns or rows."""
    pdf = (folder / f"{name}.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-") and pdf.rstrip().endswith(b"%%EOF") and pdf.count(b"/Type /Page ") == 1
    picture = plt.imread(folder / f"{name}.png")[..., :3]
    ink = (picture < 0.95).any(-1)
    assert 0.005 < ink.mean() < 0.6, f"{ink.mean():.2%} of the picture is drawn on"
    height, width = ink.shape
    for axis, size in ((1, height), (0, width)):
        drawn = ink.any(axis).nonzero()[0]
        blank = max(drawn[0], size - 1 - drawn[-1], *(drawn[1:] - drawn[:-1]))
        assert blank < 0.2 * size, f"{blank} of {size} lines are blank"
