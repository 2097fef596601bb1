"""How memory holds colours and cue: a linear model of activity on what was shown, and what each error predicts of it.

Before the cue activity is predicted from the colours of the upper and the lower item, from the cue on from target and
distractor colours, each at its place.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["PredictionModel", "periodic_spline", "prediction_model", "whitener", "without_conjunctions"]


def periodic_spline(angle: np.ndarray, knots: int = 5) -> np.ndarray:
    """Linear spline basis on the circle with evenly spaced knots: [..., knot], at most two non-zero, summing to 1."""
    place = (np.asarray(angle) + np.pi) / (2 * np.pi) * knots
    gap = np.abs(place[..., None] - np.arange(knots))
    gap = np.minimum(gap, knots - gap)
    return np.maximum(1 - gap, 0)


def _design(report: np.ndarray, cued: np.ndarray | None) -> np.ndarray:
    """Columns of the linear model: the two colours by place, or (with a cue) by role and place."""
    first, second = periodic_spline(report[:, 0]), periodic_spline(report[:, 1])
    if cued is None:
        return np.concatenate([first, second], 1)
    up, down = (cued == 0)[:, None], (cued == 1)[:, None]
    return np.concatenate([first * up, second * down, first * down, second * up], 1)


@dataclass(frozen=True)
class PredictionModel:
    """Memory activity as a linear function of colours by place (before the cue) or by role and place (from it on)."""

    weights: np.ndarray
    shift: np.ndarray
    centre: np.ndarray

    def _of(self, design: np.ndarray) -> np.ndarray:
        return np.tensordot(design - self.shift, self.weights, 1) + self.centre

    def nominal(self, report: np.ndarray, cued: np.ndarray | None = None) -> np.ndarray:
        """Predicted activity [trial, ...] of correct trials with colours report [trial, 2] and cue [trial]."""
        return self._of(_design(report, cued))

    def exchanged(self, report: np.ndarray) -> np.ndarray:
        """Before the cue: colours exchanged."""
        return self.nominal(report[:, ::-1])

    def misselected(self, report: np.ndarray, cued: np.ndarray) -> np.ndarray:
        """From the cue on: cue kept, colours exchanged."""
        return self.nominal(report[:, ::-1], cued)

    def misinterpreted(self, report: np.ndarray, cued: np.ndarray) -> np.ndarray:
        """From the cue on: colours kept, the other item taken for the cued one."""
        return self.nominal(report, 1 - cued)


def prediction_model(
    m: np.ndarray, report: np.ndarray, cued: np.ndarray | None = None, *, alpha: float = 1.0
) -> PredictionModel:
    """Ridge regression of activity m [trial, ..., unit], times apart, on colours report [trial, 2] and, where given,
    the cue [trial]."""
    design = _design(report, cued)
    shift, centre = design.mean(0), m.mean(0)
    d = design - shift
    weights = np.linalg.solve(d.T @ d + alpha * np.eye(d.shape[1]), d.T @ (m - centre).reshape(len(m), -1))
    return PredictionModel(weights.reshape(-1, *m.shape[1:]), shift, centre)


def without_conjunctions(m: np.ndarray, given: tuple[np.ndarray, ...], known: np.ndarray) -> np.ndarray:
    """Activity m [trial, ..., unit] without what it holds of the display beyond the linear model: products of the first
    two waves of one colour with those of the other, by cue where there is one. given: report [trial, 2] and, from the
    cue on, cued [trial]; known [trial]: the trials whose activity says how these are held."""
    report = given[0]
    waves = np.concatenate([f(k * report)[..., None] for k in (1, 2) for f in (np.cos, np.sin)], -1)
    both = (waves[:, 0, :, None] * waves[:, 1, None]).reshape(len(report), -1)
    shown = np.concatenate([waves[:, 0], waves[:, 1], both], 1)
    if len(given) == 2:
        shown = np.concatenate([shown * (given[1] == cue)[:, None] for cue in (0, 1)], 1)
    shown = shown - shown.mean(0)
    rest = m[known] - prediction_model(m[known], *(part[known] for part in given)).nominal(*(p[known] for p in given))
    # As many trials as weights would fit noise: the ridge is one trial's worth of each product.
    gram = shown[known].T @ shown[known] + np.eye(shown.shape[1])
    return m - (shown @ np.linalg.solve(gram, shown[known].T @ rest.reshape(len(rest), -1))).reshape(m.shape)


def whitener(residual: np.ndarray) -> np.ndarray:
    """W with W' residual of unit covariance, directions with next to no noise kept at a floor."""
    spectrum, vectors = np.linalg.eigh(np.cov(residual.T).reshape(residual.shape[1], -1))
    floor = max(spectrum.max() * 1e-3, 1e-12)
    return vectors / np.sqrt(np.maximum(spectrum, floor))
