"""What can go wrong by the user's hand, said in one sentence."""

__all__ = ["LapsusError", "LapsusWarning"]


class LapsusError(Exception):
    """A mistake in what was asked or given: the command line prints the sentence and exits with 2.

    The message names the file, row, column or field, and what would be right.

    >>> try:
    ...     lapsus.read_trials("absent.csv")
    ... except lapsus.LapsusError as error:
    ...     print(error)
    absent.csv: there is no such file or folder.
    """


class LapsusWarning(UserWarning):
    """Something that the user should know, and that does not stop the work.

    >>> issubclass(lapsus.LapsusWarning, UserWarning)
    True
    """
