"""A network on designed trials: how it does what it does."""

from lapsus.study import findings as findings
from lapsus.study.mechanism import analyse

__all__ = ["analyse"]
