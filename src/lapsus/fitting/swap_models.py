"""The swap models, simplest first: on which distances the log odds of a swap depend."""

from dataclasses import dataclass

__all__ = ["SWAP_MODELS", "SwapModel"]


@dataclass(frozen=True)
class SwapModel:
    """One swap model. features: the distances between items on which f depends; swaps: whether there are any."""

    name: str
    features: tuple[str, ...]
    meaning: str
    swaps: bool = True

    def describe(self, probe: str = "probe", report: str = "report") -> str:
        """What the model says, with the table's own names of the features."""
        names = {
            "probe": "the probe feature" if probe == "probe" else probe,
            "report": "the reported feature" if report == "report" else report,
        }
        return self.meaning.format(**names)


SWAP_MODELS = {
    model.name: model
    for model in (
        SwapModel("none", (), "only the cued item is ever reported", swaps=False),
        SwapModel("constant", (), "every non-target is reported equally often"),
        SwapModel("probe", ("probe",), "swaps depend on the distance in {probe}"),
        SwapModel("report", ("report",), "swaps depend on the distance in {report}"),
        SwapModel("both", ("probe", "report"), "swaps depend on the distances in {probe} and {report}"),
    )
}
