"""A progress line for fits: what is being done, and for how long."""

from types import TracebackType

__all__ = ["Bar"]


class Bar:
    """Stages with a count of what each has done; silent when not on a terminal.

    How many models will be compared is not known beforehand, so there is no percentage that would wait at 100.
    """

    def __init__(self, shown: bool = True):
        from tqdm import tqdm

        self._tqdm = tqdm(total=None, disable=None if shown else True, bar_format="{desc} ({elapsed})", leave=False)
        self._text, self._moves = "", 0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._tqdm.close()

    def stage(self, text: str) -> None:
        """Begin something; its text replaces the last."""
        self._text, self._moves = text, 0
        self._tqdm.set_description_str(text)
        self._tqdm.refresh()

    def step(self) -> None:
        """One move of the chains."""
        self._moves += 1
        self._tqdm.set_description_str(f"{self._text}, move {self._moves}")
        self._tqdm.update()
