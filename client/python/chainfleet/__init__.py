"""Samples the posteriors of neural networks on a fleet of workers, and predicts with their draws.

    import chainfleet as cf

    fleet = cf.connect("localhost:7400")
    job = fleet.sample("mlp", data=(x, y), sampler=cf.EMCMC(eta=4e-4), chains=4, epochs=12).wait()
    p = job.predict(x_new)  # p.mean_probability, p.mutual_information, p.error("mutual_information")

docs/guides/python.md is a tutorial. Everything that goes wrong raises a ChainfleetError.
"""

from . import errors, layers, likelihoods, potentials, priors, reasons, samplers, schedules, specs
from .draws import Draw, Draws
from .errors import ChainfleetError, FieldViolation, JobFailed
from .fleet import Fleet, connect
from .job import Job, Trace
from .prediction import Member, Prediction
from .samplers import (
    BSAM,
    EMCMC,
    HMC,
    MALA,
    SAM,
    SGD,
    SGHMC,
    SGLD,
    SWA,
    SWAG,
    BarkerMH,
    BatchedMH,
    EMCMCGibbs,
    EntropySGD,
    EntropySGLD,
    GradientUncertainty,
    MCDropout,
    PenaltyMH,
    RandomWalk,
    TemperedMH,
)
from .schedules import Cyclical
from .specs import (
    Augmentation,
    BurnIn,
    Collect,
    DatasetRef,
    Init,
    JobSpec,
    Model,
    Retention,
    Scheduling,
    Snapshots,
    Standardize,
    Sweep,
    Until,
)
from .version import __version__

__all__ = [
    "BSAM",
    "EMCMC",
    "HMC",
    "MALA",
    "SAM",
    "SGD",
    "SGHMC",
    "SGLD",
    "SWA",
    "SWAG",
    "Augmentation",
    "BarkerMH",
    "BatchedMH",
    "BurnIn",
    "ChainfleetError",
    "Collect",
    "Cyclical",
    "DatasetRef",
    "Draw",
    "Draws",
    "EMCMCGibbs",
    "EntropySGD",
    "EntropySGLD",
    "FieldViolation",
    "Fleet",
    "GradientUncertainty",
    "Init",
    "Job",
    "JobFailed",
    "JobSpec",
    "MCDropout",
    "Member",
    "Model",
    "PenaltyMH",
    "Prediction",
    "RandomWalk",
    "Retention",
    "Scheduling",
    "Snapshots",
    "Standardize",
    "Sweep",
    "TemperedMH",
    "Trace",
    "Until",
    "__version__",
    "connect",
    "errors",
    "layers",
    "likelihoods",
    "potentials",
    "priors",
    "reasons",
    "samplers",
    "schedules",
    "specs",
]
