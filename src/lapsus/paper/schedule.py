"""Appendix: the noise schedule."""

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lapsus.diffusion import linear_schedule
from lapsus.paper.roles import Networks
from lapsus.plots.style import COLUMN_WIDTH, CORRECT, SWAP, style


def figure(_: Networks) -> Figure:
    """beta_t and sigma_t over the denoising steps."""
    schedule = linear_schedule(40)
    with style():
        fig, ax = plt.subplots(figsize=(COLUMN_WIDTH, 2.2), layout="constrained")
        ax.plot(schedule.beta, color=CORRECT, label=r"corruption variance $\beta_t$")
        ax.plot(schedule.sigma, color=SWAP, label=r"generative noise s.d. $\sigma_t$")
        ax.set(xlabel="time from cue offset t (steps)", ylabel="noise", ylim=(0, None), xlim=(0, 40))
        ax.legend()
    return fig
