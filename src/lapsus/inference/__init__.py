"""Fitting a behaviour model to trials: which swap model, and its swap function with calibrated uncertainty.

    fit(trials)                     the posterior (fitting.py, result.py)
    maximum_likelihood(trials)      without priors (likelihood_fit.py)
    calibrate(design, fits)         simulation-based calibration (calibration.py)
    power(…)                        trials and subjects that a difference needs (power.py)

Read in this order: swap_prior, emissions, likelihood, model, conditional, laplace, sampler, loo, candidates, fitting.
"""

from lapsus.inference.calibration import Calibration, calibrate
from lapsus.inference.candidates import MODELS
from lapsus.inference.fitting import fit
from lapsus.inference.likelihood_fit import MaximumLikelihood, maximum_likelihood
from lapsus.inference.loo import leave_one_out
from lapsus.inference.result import Fit
from lapsus.inference.subjects import SubjectFits

__all__ = [
    "MODELS",
    "Calibration",
    "Fit",
    "MaximumLikelihood",
    "SubjectFits",
    "calibrate",
    "fit",
    "leave_one_out",
    "maximum_likelihood",
]
