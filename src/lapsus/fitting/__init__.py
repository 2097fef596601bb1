"""Fitting a behaviour model to trials: which swap model, and its swap function with calibrated uncertainty.

    fit(trials)                     the posterior (fitting.py, result.py)
    maximum_likelihood(trials)      without priors (likelihood_fit.py)
    calibrate(design, fits)         simulation-based calibration (calibration.py)
    power(…)                        trials and subjects that a difference needs (power.py)

Read in this order: swap_prior, emissions, likelihood, model, conditional, laplace, sampler, loo, candidates, fitting.
"""

from lapsus.fitting.calibration import Calibration, calibrate
from lapsus.fitting.candidates import MODELS
from lapsus.fitting.fitting import fit
from lapsus.fitting.likelihood_fit import MaximumLikelihood, maximum_likelihood
from lapsus.fitting.loo import leave_one_out
from lapsus.fitting.result import Fit
from lapsus.fitting.subjects import SubjectFits

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
