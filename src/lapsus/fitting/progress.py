"""A progress line for fits: what is being done, for how long, and how long it may still take."""

from types import TracebackType

__all__ = ["Bar"]


class Bar:
    """Stages with a count of what each has done; silent when not on a terminal.

    most: how much work there is at most, in stages of weight 1; fewer may do, since which models are compared depends
    on those before, so that the line may end before the time that it says (0: not known, nothing is said).
    """

    def __init__(self, shown: bool = True, most: float = 0):
        from tqdm import tqdm

        self._tqdm = tqdm(total=None, disable=None if shown else True, bar_format="{desc}", leave=False)
        self._text, self._moves, self._most, self._done, self._weight = "", 0, most, 0.0, 0.0
        self._began = 0.0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._tqdm.close()

    def stage(self, text: str, weight: float = 1) -> None:
        """Begin something that is so many times the work of another stage; its text replaces the last."""
        self._done, self._weight = self._done + self._weight, weight
        self._text, self._moves, self._began = text, 0, self._elapsed
        self._say(text)

    def step(self) -> None:
        """One move of the chains."""
        self._moves += 1
        self._say(f"{self._text}, move {self._moves}")
        self._tqdm.update()

    def _say(self, text: str) -> None:
        left = self.left(self._began, self._elapsed - self._began)
        self._tqdm.bar_format = f"{{desc}} ({{elapsed}}{left})"
        self._tqdm.set_description_str(text)

    @property
    def _elapsed(self) -> float:
        return self._tqdm.format_dict["elapsed"]

    def left(self, began: float, since: float = 0.0) -> str:
        """What is said of the time left, `since` seconds after a stage that began after so many; nothing before the
        first stage is over, nor when the time is up."""
        if not self._most or not self._done:
            return ""
        seconds = round(began * (self._most / self._done - 1) - since)
        return f", at most about {seconds // 60}:{seconds % 60:02d} left" if seconds > 0 else ""
