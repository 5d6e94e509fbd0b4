from chainfleet.v1 import layers_pb2 as _layers_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobSpec(_message.Message):
    __slots__ = ["augmentation", "batch_size", "burn_in", "chains", "collect", "dataset", "init", "kind", "learning_rate", "likelihood", "minibatches", "model", "name", "num_epochs", "num_steps", "precision", "preset", "prior", "resume_point_every_steps", "retention", "sample", "sampler", "scheduling", "seed", "snapshots", "standardize", "step_size", "sweep", "temperature", "trace_every", "until", "vmap"]
    class Augmentation(_message.Message):
        __slots__ = ["crop_padding", "flip"]
        CROP_PADDING_FIELD_NUMBER: _ClassVar[int]
        FLIP_FIELD_NUMBER: _ClassVar[int]
        crop_padding: int
        flip: bool
        def __init__(self, crop_padding: _Optional[int] = ..., flip: bool = ...) -> None: ...
    class BurnIn(_message.Message):
        __slots__ = ["cycles", "epochs", "steps"]
        CYCLES_FIELD_NUMBER: _ClassVar[int]
        EPOCHS_FIELD_NUMBER: _ClassVar[int]
        STEPS_FIELD_NUMBER: _ClassVar[int]
        cycles: int
        epochs: int
        steps: int
        def __init__(self, cycles: _Optional[int] = ..., epochs: _Optional[int] = ..., steps: _Optional[int] = ...) -> None: ...
    class Collect(_message.Message):
        __slots__ = ["every_steps", "kinds", "last_epochs_of_cycle", "segment_draws"]
        EVERY_STEPS_FIELD_NUMBER: _ClassVar[int]
        KINDS_FIELD_NUMBER: _ClassVar[int]
        LAST_EPOCHS_OF_CYCLE_FIELD_NUMBER: _ClassVar[int]
        SEGMENT_DRAWS_FIELD_NUMBER: _ClassVar[int]
        every_steps: int
        kinds: _containers.RepeatedScalarFieldContainer[str]
        last_epochs_of_cycle: int
        segment_draws: int
        def __init__(self, last_epochs_of_cycle: _Optional[int] = ..., every_steps: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ..., segment_draws: _Optional[int] = ...) -> None: ...
    class DatasetRef(_message.Message):
        __slots__ = ["name"]
        NAME_FIELD_NUMBER: _ClassVar[int]
        name: str
        def __init__(self, name: _Optional[str] = ...) -> None: ...
    class Init(_message.Message):
        __slots__ = ["format", "model", "perturb", "theta", "weights"]
        FORMAT_FIELD_NUMBER: _ClassVar[int]
        MODEL_FIELD_NUMBER: _ClassVar[int]
        PERTURB_FIELD_NUMBER: _ClassVar[int]
        THETA_FIELD_NUMBER: _ClassVar[int]
        WEIGHTS_FIELD_NUMBER: _ClassVar[int]
        format: str
        model: bool
        perturb: float
        theta: _containers.RepeatedScalarFieldContainer[float]
        weights: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, theta: _Optional[_Iterable[float]] = ..., perturb: _Optional[float] = ..., model: bool = ..., weights: _Optional[_Iterable[str]] = ..., format: _Optional[str] = ...) -> None: ...
    class Likelihood(_message.Message):
        __slots__ = ["bernoulli", "categorical", "gaussian", "heteroscedastic_gaussian"]
        class Empty(_message.Message):
            __slots__ = []
            def __init__(self) -> None: ...
        class Gaussian(_message.Message):
            __slots__ = ["learned", "variance"]
            LEARNED_FIELD_NUMBER: _ClassVar[int]
            VARIANCE_FIELD_NUMBER: _ClassVar[int]
            learned: bool
            variance: float
            def __init__(self, variance: _Optional[float] = ..., learned: bool = ...) -> None: ...
        class HeteroscedasticGaussian(_message.Message):
            __slots__ = ["deviation"]
            DEVIATION_FIELD_NUMBER: _ClassVar[int]
            deviation: str
            def __init__(self, deviation: _Optional[str] = ...) -> None: ...
        BERNOULLI_FIELD_NUMBER: _ClassVar[int]
        CATEGORICAL_FIELD_NUMBER: _ClassVar[int]
        GAUSSIAN_FIELD_NUMBER: _ClassVar[int]
        HETEROSCEDASTIC_GAUSSIAN_FIELD_NUMBER: _ClassVar[int]
        bernoulli: JobSpec.Likelihood.Empty
        categorical: JobSpec.Likelihood.Empty
        gaussian: JobSpec.Likelihood.Gaussian
        heteroscedastic_gaussian: JobSpec.Likelihood.HeteroscedasticGaussian
        def __init__(self, categorical: _Optional[_Union[JobSpec.Likelihood.Empty, _Mapping]] = ..., gaussian: _Optional[_Union[JobSpec.Likelihood.Gaussian, _Mapping]] = ..., heteroscedastic_gaussian: _Optional[_Union[JobSpec.Likelihood.HeteroscedasticGaussian, _Mapping]] = ..., bernoulli: _Optional[_Union[JobSpec.Likelihood.Empty, _Mapping]] = ...) -> None: ...
    class Model(_message.Message):
        __slots__ = ["builtin", "exported", "hidden", "layers", "potential", "stem", "torchscript", "vocabulary", "width"]
        BUILTIN_FIELD_NUMBER: _ClassVar[int]
        EXPORTED_FIELD_NUMBER: _ClassVar[int]
        HIDDEN_FIELD_NUMBER: _ClassVar[int]
        LAYERS_FIELD_NUMBER: _ClassVar[int]
        POTENTIAL_FIELD_NUMBER: _ClassVar[int]
        STEM_FIELD_NUMBER: _ClassVar[int]
        TORCHSCRIPT_FIELD_NUMBER: _ClassVar[int]
        VOCABULARY_FIELD_NUMBER: _ClassVar[int]
        WIDTH_FIELD_NUMBER: _ClassVar[int]
        builtin: str
        exported: str
        hidden: _containers.RepeatedScalarFieldContainer[int]
        layers: _containers.RepeatedCompositeFieldContainer[_layers_pb2.Layer]
        potential: JobSpec.Potential
        stem: str
        torchscript: str
        vocabulary: int
        width: float
        def __init__(self, builtin: _Optional[str] = ..., potential: _Optional[_Union[JobSpec.Potential, _Mapping]] = ..., torchscript: _Optional[str] = ..., exported: _Optional[str] = ..., hidden: _Optional[_Iterable[int]] = ..., width: _Optional[float] = ..., stem: _Optional[str] = ..., vocabulary: _Optional[int] = ..., layers: _Optional[_Iterable[_Union[_layers_pb2.Layer, _Mapping]]] = ...) -> None: ...
    class Potential(_message.Message):
        __slots__ = ["gaussian", "gaussian_mixture", "linear_regression", "logistic_regression"]
        class Gaussian(_message.Message):
            __slots__ = ["covariance", "dimension", "mean", "precision"]
            COVARIANCE_FIELD_NUMBER: _ClassVar[int]
            DIMENSION_FIELD_NUMBER: _ClassVar[int]
            MEAN_FIELD_NUMBER: _ClassVar[int]
            PRECISION_FIELD_NUMBER: _ClassVar[int]
            covariance: _containers.RepeatedScalarFieldContainer[float]
            dimension: int
            mean: _containers.RepeatedScalarFieldContainer[float]
            precision: float
            def __init__(self, dimension: _Optional[int] = ..., precision: _Optional[float] = ..., covariance: _Optional[_Iterable[float]] = ..., mean: _Optional[_Iterable[float]] = ...) -> None: ...
        class GaussianMixture(_message.Message):
            __slots__ = ["dimension", "means", "stddev", "weights"]
            DIMENSION_FIELD_NUMBER: _ClassVar[int]
            MEANS_FIELD_NUMBER: _ClassVar[int]
            STDDEV_FIELD_NUMBER: _ClassVar[int]
            WEIGHTS_FIELD_NUMBER: _ClassVar[int]
            dimension: int
            means: _containers.RepeatedScalarFieldContainer[float]
            stddev: _containers.RepeatedScalarFieldContainer[float]
            weights: _containers.RepeatedScalarFieldContainer[float]
            def __init__(self, weights: _Optional[_Iterable[float]] = ..., means: _Optional[_Iterable[float]] = ..., stddev: _Optional[_Iterable[float]] = ..., dimension: _Optional[int] = ...) -> None: ...
        class LinearRegression(_message.Message):
            __slots__ = ["intercept", "noise_variance"]
            INTERCEPT_FIELD_NUMBER: _ClassVar[int]
            NOISE_VARIANCE_FIELD_NUMBER: _ClassVar[int]
            intercept: bool
            noise_variance: float
            def __init__(self, noise_variance: _Optional[float] = ..., intercept: bool = ...) -> None: ...
        class LogisticRegression(_message.Message):
            __slots__ = ["intercept"]
            INTERCEPT_FIELD_NUMBER: _ClassVar[int]
            intercept: bool
            def __init__(self, intercept: bool = ...) -> None: ...
        GAUSSIAN_FIELD_NUMBER: _ClassVar[int]
        GAUSSIAN_MIXTURE_FIELD_NUMBER: _ClassVar[int]
        LINEAR_REGRESSION_FIELD_NUMBER: _ClassVar[int]
        LOGISTIC_REGRESSION_FIELD_NUMBER: _ClassVar[int]
        gaussian: JobSpec.Potential.Gaussian
        gaussian_mixture: JobSpec.Potential.GaussianMixture
        linear_regression: JobSpec.Potential.LinearRegression
        logistic_regression: JobSpec.Potential.LogisticRegression
        def __init__(self, gaussian: _Optional[_Union[JobSpec.Potential.Gaussian, _Mapping]] = ..., gaussian_mixture: _Optional[_Union[JobSpec.Potential.GaussianMixture, _Mapping]] = ..., linear_regression: _Optional[_Union[JobSpec.Potential.LinearRegression, _Mapping]] = ..., logistic_regression: _Optional[_Union[JobSpec.Potential.LogisticRegression, _Mapping]] = ...) -> None: ...
    class Prior(_message.Message):
        __slots__ = ["gaussian", "laplace", "student_t"]
        class Gaussian(_message.Message):
            __slots__ = ["layers", "precision"]
            class LayersEntry(_message.Message):
                __slots__ = ["key", "value"]
                KEY_FIELD_NUMBER: _ClassVar[int]
                VALUE_FIELD_NUMBER: _ClassVar[int]
                key: str
                value: float
                def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
            LAYERS_FIELD_NUMBER: _ClassVar[int]
            PRECISION_FIELD_NUMBER: _ClassVar[int]
            layers: _containers.ScalarMap[str, float]
            precision: float
            def __init__(self, precision: _Optional[float] = ..., layers: _Optional[_Mapping[str, float]] = ...) -> None: ...
        class Laplace(_message.Message):
            __slots__ = ["scale"]
            SCALE_FIELD_NUMBER: _ClassVar[int]
            scale: float
            def __init__(self, scale: _Optional[float] = ...) -> None: ...
        class StudentT(_message.Message):
            __slots__ = ["degrees_of_freedom", "scale"]
            DEGREES_OF_FREEDOM_FIELD_NUMBER: _ClassVar[int]
            SCALE_FIELD_NUMBER: _ClassVar[int]
            degrees_of_freedom: float
            scale: float
            def __init__(self, degrees_of_freedom: _Optional[float] = ..., scale: _Optional[float] = ...) -> None: ...
        GAUSSIAN_FIELD_NUMBER: _ClassVar[int]
        LAPLACE_FIELD_NUMBER: _ClassVar[int]
        STUDENT_T_FIELD_NUMBER: _ClassVar[int]
        gaussian: JobSpec.Prior.Gaussian
        laplace: JobSpec.Prior.Laplace
        student_t: JobSpec.Prior.StudentT
        def __init__(self, gaussian: _Optional[_Union[JobSpec.Prior.Gaussian, _Mapping]] = ..., laplace: _Optional[_Union[JobSpec.Prior.Laplace, _Mapping]] = ..., student_t: _Optional[_Union[JobSpec.Prior.StudentT, _Mapping]] = ...) -> None: ...
    class Retention(_message.Message):
        __slots__ = ["keep_last", "ttl_seconds"]
        KEEP_LAST_FIELD_NUMBER: _ClassVar[int]
        TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
        keep_last: int
        ttl_seconds: float
        def __init__(self, keep_last: _Optional[int] = ..., ttl_seconds: _Optional[float] = ...) -> None: ...
    class Sampler(_message.Message):
        __slots__ = ["barker_mh", "batched_mh", "bsam", "emcmc", "emcmc_gibbs", "entropy_sgd", "entropy_sgld", "gradient_uncertainty", "hmc", "laplace", "mala", "mc_dropout", "mile", "penalty_mh", "random_walk", "sam", "sgd", "sghmc", "sgld", "smile", "swa", "swag", "tempered_mh"]
        class BatchedMh(_message.Message):
            __slots__ = ["num_batches", "proposal"]
            NUM_BATCHES_FIELD_NUMBER: _ClassVar[int]
            PROPOSAL_FIELD_NUMBER: _ClassVar[int]
            num_batches: int
            proposal: str
            def __init__(self, proposal: _Optional[str] = ..., num_batches: _Optional[int] = ...) -> None: ...
        class Bsam(_message.Message):
            __slots__ = ["beta1", "beta2", "damping", "data_multiplier", "initial_scale", "parts", "prior_precision", "rho"]
            BETA1_FIELD_NUMBER: _ClassVar[int]
            BETA2_FIELD_NUMBER: _ClassVar[int]
            DAMPING_FIELD_NUMBER: _ClassVar[int]
            DATA_MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
            INITIAL_SCALE_FIELD_NUMBER: _ClassVar[int]
            PARTS_FIELD_NUMBER: _ClassVar[int]
            PRIOR_PRECISION_FIELD_NUMBER: _ClassVar[int]
            RHO_FIELD_NUMBER: _ClassVar[int]
            beta1: float
            beta2: float
            damping: float
            data_multiplier: float
            initial_scale: float
            parts: int
            prior_precision: float
            rho: float
            def __init__(self, beta1: _Optional[float] = ..., beta2: _Optional[float] = ..., prior_precision: _Optional[float] = ..., rho: _Optional[float] = ..., damping: _Optional[float] = ..., initial_scale: _Optional[float] = ..., data_multiplier: _Optional[float] = ..., parts: _Optional[int] = ...) -> None: ...
        class Emcmc(_message.Message):
            __slots__ = ["anchor_decay", "eta", "noise_free_fraction"]
            ANCHOR_DECAY_FIELD_NUMBER: _ClassVar[int]
            ETA_FIELD_NUMBER: _ClassVar[int]
            NOISE_FREE_FRACTION_FIELD_NUMBER: _ClassVar[int]
            anchor_decay: bool
            eta: float
            noise_free_fraction: float
            def __init__(self, eta: _Optional[float] = ..., anchor_decay: bool = ..., noise_free_fraction: _Optional[float] = ...) -> None: ...
        class EmcmcGibbs(_message.Message):
            __slots__ = ["eta", "inner_steps"]
            ETA_FIELD_NUMBER: _ClassVar[int]
            INNER_STEPS_FIELD_NUMBER: _ClassVar[int]
            eta: float
            inner_steps: int
            def __init__(self, eta: _Optional[float] = ..., inner_steps: _Optional[int] = ...) -> None: ...
        class EntropySgd(_message.Message):
            __slots__ = ["averaging", "eta", "inner_steps"]
            AVERAGING_FIELD_NUMBER: _ClassVar[int]
            ETA_FIELD_NUMBER: _ClassVar[int]
            INNER_STEPS_FIELD_NUMBER: _ClassVar[int]
            averaging: float
            eta: float
            inner_steps: int
            def __init__(self, eta: _Optional[float] = ..., inner_steps: _Optional[int] = ..., averaging: _Optional[float] = ...) -> None: ...
        class GradientUncertainty(_message.Message):
            __slots__ = ["quantile", "scale_free", "threshold"]
            QUANTILE_FIELD_NUMBER: _ClassVar[int]
            SCALE_FREE_FIELD_NUMBER: _ClassVar[int]
            THRESHOLD_FIELD_NUMBER: _ClassVar[int]
            quantile: float
            scale_free: bool
            threshold: float
            def __init__(self, threshold: _Optional[float] = ..., quantile: _Optional[float] = ..., scale_free: bool = ...) -> None: ...
        class Hmc(_message.Message):
            __slots__ = ["leapfrog_steps"]
            LEAPFROG_STEPS_FIELD_NUMBER: _ClassVar[int]
            leapfrog_steps: int
            def __init__(self, leapfrog_steps: _Optional[int] = ...) -> None: ...
        class Laplace(_message.Message):
            __slots__ = ["draws", "momentum", "optimizer", "structure"]
            DRAWS_FIELD_NUMBER: _ClassVar[int]
            MOMENTUM_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
            STRUCTURE_FIELD_NUMBER: _ClassVar[int]
            draws: int
            momentum: float
            optimizer: str
            structure: str
            def __init__(self, structure: _Optional[str] = ..., momentum: _Optional[float] = ..., draws: _Optional[int] = ..., optimizer: _Optional[str] = ...) -> None: ...
        class Mala(_message.Message):
            __slots__ = []
            def __init__(self) -> None: ...
        class McDropout(_message.Message):
            __slots__ = ["draws", "momentum", "optimizer", "rate"]
            DRAWS_FIELD_NUMBER: _ClassVar[int]
            MOMENTUM_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
            RATE_FIELD_NUMBER: _ClassVar[int]
            draws: int
            momentum: float
            optimizer: str
            rate: float
            def __init__(self, rate: _Optional[float] = ..., momentum: _Optional[float] = ..., draws: _Optional[int] = ..., optimizer: _Optional[str] = ...) -> None: ...
        class Mile(_message.Message):
            __slots__ = ["decoherence_length", "descent", "energy_variance_end", "energy_variance_start", "initial_step", "optimizer_steps", "patience", "validation_fraction", "warm_up_steps"]
            DECOHERENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
            DESCENT_FIELD_NUMBER: _ClassVar[int]
            ENERGY_VARIANCE_END_FIELD_NUMBER: _ClassVar[int]
            ENERGY_VARIANCE_START_FIELD_NUMBER: _ClassVar[int]
            INITIAL_STEP_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_STEPS_FIELD_NUMBER: _ClassVar[int]
            PATIENCE_FIELD_NUMBER: _ClassVar[int]
            VALIDATION_FRACTION_FIELD_NUMBER: _ClassVar[int]
            WARM_UP_STEPS_FIELD_NUMBER: _ClassVar[int]
            decoherence_length: float
            descent: str
            energy_variance_end: float
            energy_variance_start: float
            initial_step: float
            optimizer_steps: int
            patience: int
            validation_fraction: float
            warm_up_steps: int
            def __init__(self, optimizer_steps: _Optional[int] = ..., validation_fraction: _Optional[float] = ..., patience: _Optional[int] = ..., warm_up_steps: _Optional[int] = ..., initial_step: _Optional[float] = ..., energy_variance_start: _Optional[float] = ..., energy_variance_end: _Optional[float] = ..., decoherence_length: _Optional[float] = ..., descent: _Optional[str] = ...) -> None: ...
        class PenaltyMh(_message.Message):
            __slots__ = ["effective_data_size", "num_batches", "penalty", "proposal"]
            EFFECTIVE_DATA_SIZE_FIELD_NUMBER: _ClassVar[int]
            NUM_BATCHES_FIELD_NUMBER: _ClassVar[int]
            PENALTY_FIELD_NUMBER: _ClassVar[int]
            PROPOSAL_FIELD_NUMBER: _ClassVar[int]
            effective_data_size: float
            num_batches: int
            penalty: str
            proposal: str
            def __init__(self, proposal: _Optional[str] = ..., num_batches: _Optional[int] = ..., penalty: _Optional[str] = ..., effective_data_size: _Optional[float] = ...) -> None: ...
        class RandomWalk(_message.Message):
            __slots__ = []
            def __init__(self) -> None: ...
        class Sam(_message.Message):
            __slots__ = ["momentum", "rho"]
            MOMENTUM_FIELD_NUMBER: _ClassVar[int]
            RHO_FIELD_NUMBER: _ClassVar[int]
            momentum: float
            rho: float
            def __init__(self, rho: _Optional[float] = ..., momentum: _Optional[float] = ...) -> None: ...
        class Sgd(_message.Message):
            __slots__ = ["momentum", "optimizer"]
            MOMENTUM_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
            momentum: float
            optimizer: str
            def __init__(self, momentum: _Optional[float] = ..., optimizer: _Optional[str] = ...) -> None: ...
        class Sghmc(_message.Message):
            __slots__ = ["friction", "noise_free_fraction", "scheme"]
            FRICTION_FIELD_NUMBER: _ClassVar[int]
            NOISE_FREE_FRACTION_FIELD_NUMBER: _ClassVar[int]
            SCHEME_FIELD_NUMBER: _ClassVar[int]
            friction: float
            noise_free_fraction: float
            scheme: str
            def __init__(self, friction: _Optional[float] = ..., scheme: _Optional[str] = ..., noise_free_fraction: _Optional[float] = ...) -> None: ...
        class Sgld(_message.Message):
            __slots__ = ["gradient_noise", "noise_free_fraction"]
            GRADIENT_NOISE_FIELD_NUMBER: _ClassVar[int]
            NOISE_FREE_FRACTION_FIELD_NUMBER: _ClassVar[int]
            gradient_noise: float
            noise_free_fraction: float
            def __init__(self, gradient_noise: _Optional[float] = ..., noise_free_fraction: _Optional[float] = ...) -> None: ...
        class Smile(_message.Message):
            __slots__ = ["decoherence_length", "descent", "energy_variance_end", "energy_variance_start", "initial_step", "noise_share", "optimizer_steps", "precondition", "warm_up_steps"]
            DECOHERENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
            DESCENT_FIELD_NUMBER: _ClassVar[int]
            ENERGY_VARIANCE_END_FIELD_NUMBER: _ClassVar[int]
            ENERGY_VARIANCE_START_FIELD_NUMBER: _ClassVar[int]
            INITIAL_STEP_FIELD_NUMBER: _ClassVar[int]
            NOISE_SHARE_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_STEPS_FIELD_NUMBER: _ClassVar[int]
            PRECONDITION_FIELD_NUMBER: _ClassVar[int]
            WARM_UP_STEPS_FIELD_NUMBER: _ClassVar[int]
            decoherence_length: float
            descent: str
            energy_variance_end: float
            energy_variance_start: float
            initial_step: float
            noise_share: float
            optimizer_steps: int
            precondition: bool
            warm_up_steps: int
            def __init__(self, optimizer_steps: _Optional[int] = ..., warm_up_steps: _Optional[int] = ..., initial_step: _Optional[float] = ..., energy_variance_start: _Optional[float] = ..., energy_variance_end: _Optional[float] = ..., precondition: bool = ..., decoherence_length: _Optional[float] = ..., descent: _Optional[str] = ..., noise_share: _Optional[float] = ...) -> None: ...
        class Swa(_message.Message):
            __slots__ = ["momentum", "optimizer", "start_epoch"]
            MOMENTUM_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
            START_EPOCH_FIELD_NUMBER: _ClassVar[int]
            momentum: float
            optimizer: str
            start_epoch: int
            def __init__(self, momentum: _Optional[float] = ..., start_epoch: _Optional[int] = ..., optimizer: _Optional[str] = ...) -> None: ...
        class Swag(_message.Message):
            __slots__ = ["diagonal", "draws", "max_rank", "momentum", "optimizer", "scale", "start_epoch"]
            DIAGONAL_FIELD_NUMBER: _ClassVar[int]
            DRAWS_FIELD_NUMBER: _ClassVar[int]
            MAX_RANK_FIELD_NUMBER: _ClassVar[int]
            MOMENTUM_FIELD_NUMBER: _ClassVar[int]
            OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
            SCALE_FIELD_NUMBER: _ClassVar[int]
            START_EPOCH_FIELD_NUMBER: _ClassVar[int]
            diagonal: bool
            draws: int
            max_rank: int
            momentum: float
            optimizer: str
            scale: float
            start_epoch: int
            def __init__(self, momentum: _Optional[float] = ..., start_epoch: _Optional[int] = ..., diagonal: bool = ..., max_rank: _Optional[int] = ..., scale: _Optional[float] = ..., draws: _Optional[int] = ..., optimizer: _Optional[str] = ...) -> None: ...
        class TemperedMh(_message.Message):
            __slots__ = ["data_size"]
            DATA_SIZE_FIELD_NUMBER: _ClassVar[int]
            data_size: float
            def __init__(self, data_size: _Optional[float] = ...) -> None: ...
        BARKER_MH_FIELD_NUMBER: _ClassVar[int]
        BATCHED_MH_FIELD_NUMBER: _ClassVar[int]
        BSAM_FIELD_NUMBER: _ClassVar[int]
        EMCMC_FIELD_NUMBER: _ClassVar[int]
        EMCMC_GIBBS_FIELD_NUMBER: _ClassVar[int]
        ENTROPY_SGD_FIELD_NUMBER: _ClassVar[int]
        ENTROPY_SGLD_FIELD_NUMBER: _ClassVar[int]
        GRADIENT_UNCERTAINTY_FIELD_NUMBER: _ClassVar[int]
        HMC_FIELD_NUMBER: _ClassVar[int]
        LAPLACE_FIELD_NUMBER: _ClassVar[int]
        MALA_FIELD_NUMBER: _ClassVar[int]
        MC_DROPOUT_FIELD_NUMBER: _ClassVar[int]
        MILE_FIELD_NUMBER: _ClassVar[int]
        PENALTY_MH_FIELD_NUMBER: _ClassVar[int]
        RANDOM_WALK_FIELD_NUMBER: _ClassVar[int]
        SAM_FIELD_NUMBER: _ClassVar[int]
        SGD_FIELD_NUMBER: _ClassVar[int]
        SGHMC_FIELD_NUMBER: _ClassVar[int]
        SGLD_FIELD_NUMBER: _ClassVar[int]
        SMILE_FIELD_NUMBER: _ClassVar[int]
        SWAG_FIELD_NUMBER: _ClassVar[int]
        SWA_FIELD_NUMBER: _ClassVar[int]
        TEMPERED_MH_FIELD_NUMBER: _ClassVar[int]
        barker_mh: JobSpec.Sampler.BatchedMh
        batched_mh: JobSpec.Sampler.BatchedMh
        bsam: JobSpec.Sampler.Bsam
        emcmc: JobSpec.Sampler.Emcmc
        emcmc_gibbs: JobSpec.Sampler.EmcmcGibbs
        entropy_sgd: JobSpec.Sampler.EntropySgd
        entropy_sgld: JobSpec.Sampler.EntropySgd
        gradient_uncertainty: JobSpec.Sampler.GradientUncertainty
        hmc: JobSpec.Sampler.Hmc
        laplace: JobSpec.Sampler.Laplace
        mala: JobSpec.Sampler.Mala
        mc_dropout: JobSpec.Sampler.McDropout
        mile: JobSpec.Sampler.Mile
        penalty_mh: JobSpec.Sampler.PenaltyMh
        random_walk: JobSpec.Sampler.RandomWalk
        sam: JobSpec.Sampler.Sam
        sgd: JobSpec.Sampler.Sgd
        sghmc: JobSpec.Sampler.Sghmc
        sgld: JobSpec.Sampler.Sgld
        smile: JobSpec.Sampler.Smile
        swa: JobSpec.Sampler.Swa
        swag: JobSpec.Sampler.Swag
        tempered_mh: JobSpec.Sampler.TemperedMh
        def __init__(self, sgld: _Optional[_Union[JobSpec.Sampler.Sgld, _Mapping]] = ..., emcmc: _Optional[_Union[JobSpec.Sampler.Emcmc, _Mapping]] = ..., sgd: _Optional[_Union[JobSpec.Sampler.Sgd, _Mapping]] = ..., sghmc: _Optional[_Union[JobSpec.Sampler.Sghmc, _Mapping]] = ..., emcmc_gibbs: _Optional[_Union[JobSpec.Sampler.EmcmcGibbs, _Mapping]] = ..., entropy_sgd: _Optional[_Union[JobSpec.Sampler.EntropySgd, _Mapping]] = ..., entropy_sgld: _Optional[_Union[JobSpec.Sampler.EntropySgd, _Mapping]] = ..., sam: _Optional[_Union[JobSpec.Sampler.Sam, _Mapping]] = ..., bsam: _Optional[_Union[JobSpec.Sampler.Bsam, _Mapping]] = ..., gradient_uncertainty: _Optional[_Union[JobSpec.Sampler.GradientUncertainty, _Mapping]] = ..., random_walk: _Optional[_Union[JobSpec.Sampler.RandomWalk, _Mapping]] = ..., mala: _Optional[_Union[JobSpec.Sampler.Mala, _Mapping]] = ..., hmc: _Optional[_Union[JobSpec.Sampler.Hmc, _Mapping]] = ..., penalty_mh: _Optional[_Union[JobSpec.Sampler.PenaltyMh, _Mapping]] = ..., batched_mh: _Optional[_Union[JobSpec.Sampler.BatchedMh, _Mapping]] = ..., tempered_mh: _Optional[_Union[JobSpec.Sampler.TemperedMh, _Mapping]] = ..., barker_mh: _Optional[_Union[JobSpec.Sampler.BatchedMh, _Mapping]] = ..., swa: _Optional[_Union[JobSpec.Sampler.Swa, _Mapping]] = ..., swag: _Optional[_Union[JobSpec.Sampler.Swag, _Mapping]] = ..., mc_dropout: _Optional[_Union[JobSpec.Sampler.McDropout, _Mapping]] = ..., laplace: _Optional[_Union[JobSpec.Sampler.Laplace, _Mapping]] = ..., mile: _Optional[_Union[JobSpec.Sampler.Mile, _Mapping]] = ..., smile: _Optional[_Union[JobSpec.Sampler.Smile, _Mapping]] = ...) -> None: ...
    class Schedule(_message.Message):
        __slots__ = ["constant", "cyclical", "exponential", "linear", "polynomial", "step", "swag"]
        class Cyclical(_message.Message):
            __slots__ = ["cycles", "final", "initial"]
            CYCLES_FIELD_NUMBER: _ClassVar[int]
            FINAL_FIELD_NUMBER: _ClassVar[int]
            INITIAL_FIELD_NUMBER: _ClassVar[int]
            cycles: int
            final: float
            initial: float
            def __init__(self, initial: _Optional[float] = ..., final: _Optional[float] = ..., cycles: _Optional[int] = ...) -> None: ...
        class Polynomial(_message.Message):
            __slots__ = ["initial", "offset", "power"]
            INITIAL_FIELD_NUMBER: _ClassVar[int]
            OFFSET_FIELD_NUMBER: _ClassVar[int]
            POWER_FIELD_NUMBER: _ClassVar[int]
            initial: float
            offset: float
            power: float
            def __init__(self, initial: _Optional[float] = ..., offset: _Optional[float] = ..., power: _Optional[float] = ...) -> None: ...
        class Ramp(_message.Message):
            __slots__ = ["final", "initial"]
            FINAL_FIELD_NUMBER: _ClassVar[int]
            INITIAL_FIELD_NUMBER: _ClassVar[int]
            final: float
            initial: float
            def __init__(self, initial: _Optional[float] = ..., final: _Optional[float] = ...) -> None: ...
        class Step(_message.Message):
            __slots__ = ["at", "factor", "initial"]
            AT_FIELD_NUMBER: _ClassVar[int]
            FACTOR_FIELD_NUMBER: _ClassVar[int]
            INITIAL_FIELD_NUMBER: _ClassVar[int]
            at: float
            factor: float
            initial: float
            def __init__(self, initial: _Optional[float] = ..., factor: _Optional[float] = ..., at: _Optional[float] = ...) -> None: ...
        class Swag(_message.Message):
            __slots__ = ["final", "initial", "start_epoch"]
            FINAL_FIELD_NUMBER: _ClassVar[int]
            INITIAL_FIELD_NUMBER: _ClassVar[int]
            START_EPOCH_FIELD_NUMBER: _ClassVar[int]
            final: float
            initial: float
            start_epoch: int
            def __init__(self, initial: _Optional[float] = ..., final: _Optional[float] = ..., start_epoch: _Optional[int] = ...) -> None: ...
        CONSTANT_FIELD_NUMBER: _ClassVar[int]
        CYCLICAL_FIELD_NUMBER: _ClassVar[int]
        EXPONENTIAL_FIELD_NUMBER: _ClassVar[int]
        LINEAR_FIELD_NUMBER: _ClassVar[int]
        POLYNOMIAL_FIELD_NUMBER: _ClassVar[int]
        STEP_FIELD_NUMBER: _ClassVar[int]
        SWAG_FIELD_NUMBER: _ClassVar[int]
        constant: float
        cyclical: JobSpec.Schedule.Cyclical
        exponential: JobSpec.Schedule.Ramp
        linear: JobSpec.Schedule.Ramp
        polynomial: JobSpec.Schedule.Polynomial
        step: JobSpec.Schedule.Step
        swag: JobSpec.Schedule.Swag
        def __init__(self, constant: _Optional[float] = ..., cyclical: _Optional[_Union[JobSpec.Schedule.Cyclical, _Mapping]] = ..., linear: _Optional[_Union[JobSpec.Schedule.Ramp, _Mapping]] = ..., exponential: _Optional[_Union[JobSpec.Schedule.Ramp, _Mapping]] = ..., step: _Optional[_Union[JobSpec.Schedule.Step, _Mapping]] = ..., swag: _Optional[_Union[JobSpec.Schedule.Swag, _Mapping]] = ..., polynomial: _Optional[_Union[JobSpec.Schedule.Polynomial, _Mapping]] = ...) -> None: ...
    class Scheduling(_message.Message):
        __slots__ = ["priority", "success_chains"]
        PRIORITY_FIELD_NUMBER: _ClassVar[int]
        SUCCESS_CHAINS_FIELD_NUMBER: _ClassVar[int]
        priority: str
        success_chains: int
        def __init__(self, priority: _Optional[str] = ..., success_chains: _Optional[int] = ...) -> None: ...
    class Snapshots(_message.Message):
        __slots__ = ["every_draws", "every_seconds"]
        EVERY_DRAWS_FIELD_NUMBER: _ClassVar[int]
        EVERY_SECONDS_FIELD_NUMBER: _ClassVar[int]
        every_draws: int
        every_seconds: float
        def __init__(self, every_draws: _Optional[int] = ..., every_seconds: _Optional[float] = ...) -> None: ...
    class Standardize(_message.Message):
        __slots__ = ["inputs", "targets"]
        INPUTS_FIELD_NUMBER: _ClassVar[int]
        TARGETS_FIELD_NUMBER: _ClassVar[int]
        inputs: bool
        targets: bool
        def __init__(self, inputs: bool = ..., targets: bool = ...) -> None: ...
    class Sweep(_message.Message):
        __slots__ = ["eta", "friction", "learning_rate", "prior_precision", "rho", "step_size", "temperature"]
        ETA_FIELD_NUMBER: _ClassVar[int]
        FRICTION_FIELD_NUMBER: _ClassVar[int]
        LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
        PRIOR_PRECISION_FIELD_NUMBER: _ClassVar[int]
        RHO_FIELD_NUMBER: _ClassVar[int]
        STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
        TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
        eta: _containers.RepeatedScalarFieldContainer[float]
        friction: _containers.RepeatedScalarFieldContainer[float]
        learning_rate: _containers.RepeatedScalarFieldContainer[float]
        prior_precision: _containers.RepeatedScalarFieldContainer[float]
        rho: _containers.RepeatedScalarFieldContainer[float]
        step_size: _containers.RepeatedScalarFieldContainer[float]
        temperature: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, step_size: _Optional[_Iterable[float]] = ..., learning_rate: _Optional[_Iterable[float]] = ..., temperature: _Optional[_Iterable[float]] = ..., prior_precision: _Optional[_Iterable[float]] = ..., eta: _Optional[_Iterable[float]] = ..., friction: _Optional[_Iterable[float]] = ..., rho: _Optional[_Iterable[float]] = ...) -> None: ...
    class Until(_message.Message):
        __slots__ = ["ess_above", "max_draws", "nested_rhat_below", "rhat_below"]
        ESS_ABOVE_FIELD_NUMBER: _ClassVar[int]
        MAX_DRAWS_FIELD_NUMBER: _ClassVar[int]
        NESTED_RHAT_BELOW_FIELD_NUMBER: _ClassVar[int]
        RHAT_BELOW_FIELD_NUMBER: _ClassVar[int]
        ess_above: float
        max_draws: int
        nested_rhat_below: float
        rhat_below: float
        def __init__(self, rhat_below: _Optional[float] = ..., ess_above: _Optional[float] = ..., max_draws: _Optional[int] = ..., nested_rhat_below: _Optional[float] = ...) -> None: ...
    AUGMENTATION_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    BURN_IN_FIELD_NUMBER: _ClassVar[int]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    COLLECT_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    INIT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
    LIKELIHOOD_FIELD_NUMBER: _ClassVar[int]
    MINIBATCHES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    NUM_STEPS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    RESUME_POINT_EVERY_STEPS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    SAMPLER_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULING_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    STANDARDIZE_FIELD_NUMBER: _ClassVar[int]
    STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
    SWEEP_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TRACE_EVERY_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    VMAP_FIELD_NUMBER: _ClassVar[int]
    augmentation: JobSpec.Augmentation
    batch_size: int
    burn_in: JobSpec.BurnIn
    chains: int
    collect: JobSpec.Collect
    dataset: JobSpec.DatasetRef
    init: JobSpec.Init
    kind: str
    learning_rate: JobSpec.Schedule
    likelihood: JobSpec.Likelihood
    minibatches: str
    model: JobSpec.Model
    name: str
    num_epochs: int
    num_steps: int
    precision: str
    preset: str
    prior: JobSpec.Prior
    resume_point_every_steps: int
    retention: JobSpec.Retention
    sample: _containers.RepeatedScalarFieldContainer[str]
    sampler: JobSpec.Sampler
    scheduling: JobSpec.Scheduling
    seed: int
    snapshots: JobSpec.Snapshots
    standardize: JobSpec.Standardize
    step_size: JobSpec.Schedule
    sweep: JobSpec.Sweep
    temperature: float
    trace_every: int
    until: JobSpec.Until
    vmap: bool
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ..., model: _Optional[_Union[JobSpec.Model, _Mapping]] = ..., dataset: _Optional[_Union[JobSpec.DatasetRef, _Mapping]] = ..., prior: _Optional[_Union[JobSpec.Prior, _Mapping]] = ..., sampler: _Optional[_Union[JobSpec.Sampler, _Mapping]] = ..., learning_rate: _Optional[_Union[JobSpec.Schedule, _Mapping]] = ..., step_size: _Optional[_Union[JobSpec.Schedule, _Mapping]] = ..., temperature: _Optional[float] = ..., batch_size: _Optional[int] = ..., minibatches: _Optional[str] = ..., num_epochs: _Optional[int] = ..., num_steps: _Optional[int] = ..., burn_in: _Optional[_Union[JobSpec.BurnIn, _Mapping]] = ..., chains: _Optional[int] = ..., collect: _Optional[_Union[JobSpec.Collect, _Mapping]] = ..., seed: _Optional[int] = ..., resume_point_every_steps: _Optional[int] = ..., sweep: _Optional[_Union[JobSpec.Sweep, _Mapping]] = ..., likelihood: _Optional[_Union[JobSpec.Likelihood, _Mapping]] = ..., scheduling: _Optional[_Union[JobSpec.Scheduling, _Mapping]] = ..., preset: _Optional[str] = ..., augmentation: _Optional[_Union[JobSpec.Augmentation, _Mapping]] = ..., precision: _Optional[str] = ..., standardize: _Optional[_Union[JobSpec.Standardize, _Mapping]] = ..., init: _Optional[_Union[JobSpec.Init, _Mapping]] = ..., sample: _Optional[_Iterable[str]] = ..., vmap: bool = ..., retention: _Optional[_Union[JobSpec.Retention, _Mapping]] = ..., snapshots: _Optional[_Union[JobSpec.Snapshots, _Mapping]] = ..., until: _Optional[_Union[JobSpec.Until, _Mapping]] = ..., trace_every: _Optional[int] = ...) -> None: ...
