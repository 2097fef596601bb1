"""A page about whatever was trained: a discovery, a run, a network that ships, or several networks side by side."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.files import holds, understood, write_text
from lapsus.pipeline.result import Discovery
from lapsus.report.findings import study_network
from lapsus.report.networks import networks_page
from lapsus.report.page import page_place
from lapsus.report.parts import shortened
from lapsus.zoo import open_network

__all__ = ["write_report"]


def write_report(
    sources: str | Path | Sequence[str | Path],
    output: str | Path | None = None,
    seed: int | None = None,
    *,
    trust: bool = False,
    sizes: SampleSizes = FULL,
    progress: Callable[[str, str], None] = lambda name, part: None,
) -> Path:
    """Write the page of one discovery, or of one or several run folders and shipped networks; returns its path.

    output: the HTML file (report.html in the folder, or here for several); seed: of fresh conditions and noise;
    progress: called with a network and what begins to be asked of it.

    >>> try:
    ...     lapsus.write_report("no-such-network")
    ... except lapsus.LapsusError as error:
    ...     print(str(error).split(".")[0])
    no-such-network is neither a run folder nor a network that ships with lapsus
    """
    if seed is not None and seed < 0:
        raise LapsusError(f"`seed` must not be negative (it is {seed}).")
    names = [str(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    if not names:
        raise LapsusError("A report needs at least one run folder or network that ships with lapsus.")
    one = Path(names[0])
    if len(names) == 1 and holds(one, "discovery"):
        if seed is not None:
            raise LapsusError(f"{shortened(one)} is a discovery, whose seed is its own; leave the seed out.")
        discovery = Discovery(one, trust)
        if "analyse" not in discovery.done:
            raise LapsusError(
                f"{shortened(one)} is a discovery that is not done; `lapsus discover` with the same arguments goes on"
                " with it."
            )
        with understood(one):
            return discovery.write_report(None if output is None else page_place(Path(output)))
    inside = len(names) == 1 and one.is_dir()
    path = page_place(Path(output) if output is not None else one / "report.html" if inside else Path("report.html"))
    found = []
    for source in names:
        network = open_network(source, trust)
        if network.experiment.behaviour.get("kind", "bns") != "bns":
            raise LapsusError(f"{shortened(source)} is no delayed-estimation network; the report is made for those.")
        found.append(study_network(network, 1 if seed is None else seed, sizes, partial(progress, source)))
    write_text(path, networks_page(found))
    return path
