"""Samples the posteriors of neural networks on a fleet of workers, and predicts with their draws.

    import chainfleet as cf

    fleet = cf.local()  # or cf.connect("host:7400", token=...)
    job = fleet.sample("mlp", data=(x, y), sampler=cf.EMCMC(eta=4e-4), chains=4, epochs=12)
    p = job.predict(x_new)  # p.mean_probability, p.mutual_information, p.error("mutual_information")

docs/guides/python.md is a tutorial. Everything that goes wrong raises a ChainfleetError.
Modules are imported when a name of theirs is used, so that importing the package takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        aio,
        contexts,
        errors,
        layers,
        likelihoods,
        pki,
        potentials,
        priors,
        reasons,
        samplers,
        schedules,
        specs,
    )
    from .draws import Draw, Draws
    from .errors import ChainfleetError, FieldViolation, JobFailed
    from .evaluation import Evaluation
    from .fleet import Fleet, connect
    from .job import Job
    from .local_fleet import down, local, restore
    from .prediction import Member, Prediction
    from .programs import run_program
    from .samplers import (
        BSAM,
        EMCMC,
        HMC,
        MALA,
        MILE,
        SAM,
        SGD,
        SGHMC,
        SGLD,
        SMILE,
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
    from .sources import Files
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
    from .traces import Trace, Traces
    from .version import __version__

__all__ = [
    "BSAM",
    "EMCMC",
    "HMC",
    "MALA",
    "MILE",
    "SAM",
    "SGD",
    "SGHMC",
    "SGLD",
    "SMILE",
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
    "Evaluation",
    "FieldViolation",
    "Files",
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
    "Traces",
    "Until",
    "__version__",
    "aio",
    "connect",
    "contexts",
    "down",
    "errors",
    "layers",
    "likelihoods",
    "local",
    "pki",
    "potentials",
    "priors",
    "reasons",
    "restore",
    "run_program",
    "samplers",
    "schedules",
    "specs",
]
_MODULES = frozenset(
    (
        "aio",
        "contexts",
        "errors",
        "layers",
        "likelihoods",
        "pki",
        "potentials",
        "priors",
        "reasons",
        "samplers",
        "schedules",
        "specs",
    )
)
# Modules of all other names. The first ones are light; the last ones import grpc.
_LIGHT = ("version", "errors", "samplers", "schedules", "specs", "programs")
_HEAVY = ("sources", "traces", "draws", "prediction", "evaluation", "job", "fleet", "local_fleet")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    for home in _LIGHT + _HEAVY:
        found = getattr(import_module(f".{home}", __name__), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AssertionError(f"no module of the package has {name}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
