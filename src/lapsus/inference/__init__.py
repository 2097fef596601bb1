"""Fitting a behaviour model to trials: which swap model, and its swap function with calibrated uncertainty.

    fit(trials)                     the posterior (fitting.py, result.py)
    maximum_likelihood(trials)      without priors (likelihood_fit.py)
    calibrate(design, fits)         simulation-based calibration (calibration.py)

Read in this order: swap_prior, emissions, likelihood, model, variational, conditional, sampler, loo, fitting.
"""

from lapsus.inference.calibration import Calibration, calibrate
from lapsus.inference.fitting import MODELS, fit
from lapsus.inference.likelihood_fit import MaximumLikelihood, maximum_likelihood
from lapsus.inference.loo import leave_one_out
from lapsus.inference.result import Fit, SubjectFits

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
