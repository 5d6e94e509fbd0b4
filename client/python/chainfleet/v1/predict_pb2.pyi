from chainfleet.v1 import types_pb2 as _types_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChainWeight(_message.Message):
    __slots__ = ["chain", "pseudo_bma", "stacking"]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    PSEUDO_BMA_FIELD_NUMBER: _ClassVar[int]
    STACKING_FIELD_NUMBER: _ClassVar[int]
    chain: _types_pb2.ChainId
    pseudo_bma: float
    stacking: float
    def __init__(self, chain: _Optional[_Union[_types_pb2.ChainId, _Mapping]] = ..., stacking: _Optional[float] = ..., pseudo_bma: _Optional[float] = ...) -> None: ...

class ConformalScore(_message.Message):
    __slots__ = ["coverage", "level", "mean_size", "threshold"]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MEAN_SIZE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    coverage: float
    level: float
    mean_size: float
    threshold: float
    def __init__(self, level: _Optional[float] = ..., threshold: _Optional[float] = ..., coverage: _Optional[float] = ..., mean_size: _Optional[float] = ...) -> None: ...

class CorruptedScores(_message.Message):
    __slots__ = ["corruption", "scores", "severity"]
    CORRUPTION_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    corruption: str
    scores: Scores
    severity: int
    def __init__(self, corruption: _Optional[str] = ..., severity: _Optional[int] = ..., scores: _Optional[_Union[Scores, _Mapping]] = ...) -> None: ...

class CurvePoint(_message.Message):
    __slots__ = ["accuracy", "ece", "nll", "num_draws"]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    ECE_FIELD_NUMBER: _ClassVar[int]
    NLL_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAWS_FIELD_NUMBER: _ClassVar[int]
    accuracy: float
    ece: float
    nll: float
    num_draws: int
    def __init__(self, num_draws: _Optional[int] = ..., accuracy: _Optional[float] = ..., nll: _Optional[float] = ..., ece: _Optional[float] = ...) -> None: ...

class DrawSelection(_message.Message):
    __slots__ = ["chains", "every", "include_failed", "kinds", "max_draws", "members", "point", "pseudo_bma", "version", "weights"]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FAILED_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    MAX_DRAWS_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    PSEUDO_BMA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedScalarFieldContainer[int]
    every: int
    include_failed: bool
    kinds: _containers.RepeatedScalarFieldContainer[_types_pb2.DrawKind]
    max_draws: int
    members: int
    point: str
    pseudo_bma: bool
    version: int
    weights: str
    def __init__(self, kinds: _Optional[_Iterable[_Union[_types_pb2.DrawKind, str]]] = ..., version: _Optional[int] = ..., members: _Optional[int] = ..., include_failed: bool = ..., point: _Optional[str] = ..., every: _Optional[int] = ..., max_draws: _Optional[int] = ..., chains: _Optional[_Iterable[int]] = ..., weights: _Optional[str] = ..., pseudo_bma: bool = ...) -> None: ...

class EvaluateRequest(_message.Message):
    __slots__ = ["calibration_dataset", "corruptions", "curve_points", "dataset", "ece_bins", "example_rows", "flatness", "job", "ood_dataset", "request_id", "selection", "stacking_dataset"]
    CALIBRATION_DATASET_FIELD_NUMBER: _ClassVar[int]
    CORRUPTIONS_FIELD_NUMBER: _ClassVar[int]
    CURVE_POINTS_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    ECE_BINS_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_ROWS_FIELD_NUMBER: _ClassVar[int]
    FLATNESS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    OOD_DATASET_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    STACKING_DATASET_FIELD_NUMBER: _ClassVar[int]
    calibration_dataset: str
    corruptions: _containers.RepeatedScalarFieldContainer[str]
    curve_points: int
    dataset: str
    ece_bins: int
    example_rows: int
    flatness: bool
    job: str
    ood_dataset: str
    request_id: str
    selection: DrawSelection
    stacking_dataset: str
    def __init__(self, job: _Optional[str] = ..., dataset: _Optional[str] = ..., ood_dataset: _Optional[str] = ..., selection: _Optional[_Union[DrawSelection, _Mapping]] = ..., ece_bins: _Optional[int] = ..., calibration_dataset: _Optional[str] = ..., corruptions: _Optional[_Iterable[str]] = ..., flatness: bool = ..., curve_points: _Optional[int] = ..., example_rows: _Optional[int] = ..., request_id: _Optional[str] = ..., stacking_dataset: _Optional[str] = ...) -> None: ...

class EvaluateUpdate(_message.Message):
    __slots__ = ["evaluation", "progress"]
    class Progress(_message.Message):
        __slots__ = ["rows_done", "rows_total"]
        ROWS_DONE_FIELD_NUMBER: _ClassVar[int]
        ROWS_TOTAL_FIELD_NUMBER: _ClassVar[int]
        rows_done: int
        rows_total: int
        def __init__(self, rows_done: _Optional[int] = ..., rows_total: _Optional[int] = ...) -> None: ...
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    progress: EvaluateUpdate.Progress
    def __init__(self, progress: _Optional[_Union[EvaluateUpdate.Progress, _Mapping]] = ..., evaluation: _Optional[_Union[Evaluation, _Mapping]] = ...) -> None: ...

class Evaluation(_message.Message):
    __slots__ = ["calibration_dataset", "conformal", "conformal_thresholds", "corrupted", "curve", "dataset", "draws_in_version", "draws_used", "examples", "flatness", "id", "job_id", "num_calibration_rows", "num_ood_rows", "num_rows", "num_stacking_rows", "ood_dataset", "point", "scores", "stacking_dataset", "version", "weights"]
    CALIBRATION_DATASET_FIELD_NUMBER: _ClassVar[int]
    CONFORMAL_FIELD_NUMBER: _ClassVar[int]
    CONFORMAL_THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    CORRUPTED_FIELD_NUMBER: _ClassVar[int]
    CURVE_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    DRAWS_IN_VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAWS_USED_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    FLATNESS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_CALIBRATION_ROWS_FIELD_NUMBER: _ClassVar[int]
    NUM_OOD_ROWS_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    NUM_STACKING_ROWS_FIELD_NUMBER: _ClassVar[int]
    OOD_DATASET_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    STACKING_DATASET_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    calibration_dataset: str
    conformal: _containers.RepeatedCompositeFieldContainer[ConformalScore]
    conformal_thresholds: _containers.RepeatedScalarFieldContainer[float]
    corrupted: _containers.RepeatedCompositeFieldContainer[CorruptedScores]
    curve: _containers.RepeatedCompositeFieldContainer[CurvePoint]
    dataset: str
    draws_in_version: int
    draws_used: int
    examples: _containers.RepeatedCompositeFieldContainer[ExampleRow]
    flatness: _containers.RepeatedCompositeFieldContainer[Flatness]
    id: str
    job_id: str
    num_calibration_rows: int
    num_ood_rows: int
    num_rows: int
    num_stacking_rows: int
    ood_dataset: str
    point: str
    scores: _containers.RepeatedCompositeFieldContainer[Scores]
    stacking_dataset: str
    version: int
    weights: _containers.RepeatedCompositeFieldContainer[ChainWeight]
    def __init__(self, job_id: _Optional[str] = ..., version: _Optional[int] = ..., dataset: _Optional[str] = ..., ood_dataset: _Optional[str] = ..., num_rows: _Optional[int] = ..., num_ood_rows: _Optional[int] = ..., draws_used: _Optional[int] = ..., draws_in_version: _Optional[int] = ..., scores: _Optional[_Iterable[_Union[Scores, _Mapping]]] = ..., calibration_dataset: _Optional[str] = ..., num_calibration_rows: _Optional[int] = ..., point: _Optional[str] = ..., curve: _Optional[_Iterable[_Union[CurvePoint, _Mapping]]] = ..., corrupted: _Optional[_Iterable[_Union[CorruptedScores, _Mapping]]] = ..., flatness: _Optional[_Iterable[_Union[Flatness, _Mapping]]] = ..., examples: _Optional[_Iterable[_Union[ExampleRow, _Mapping]]] = ..., stacking_dataset: _Optional[str] = ..., num_stacking_rows: _Optional[int] = ..., weights: _Optional[_Iterable[_Union[ChainWeight, _Mapping]]] = ..., conformal: _Optional[_Iterable[_Union[ConformalScore, _Mapping]]] = ..., conformal_thresholds: _Optional[_Iterable[float]] = ..., id: _Optional[str] = ...) -> None: ...

class EvaluationOperation(_message.Message):
    __slots__ = ["created_at", "error", "evaluation", "finished_at", "id", "job_id", "progress", "request", "state"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CANCELLED: EvaluationOperation.State
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    FAILED: EvaluationOperation.State
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    RUNNING: EvaluationOperation.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_UNSPECIFIED: EvaluationOperation.State
    SUCCEEDED: EvaluationOperation.State
    created_at: _timestamp_pb2.Timestamp
    error: str
    evaluation: Evaluation
    finished_at: _timestamp_pb2.Timestamp
    id: str
    job_id: str
    progress: EvaluateUpdate.Progress
    request: EvaluateRequest
    state: EvaluationOperation.State
    def __init__(self, id: _Optional[str] = ..., request: _Optional[_Union[EvaluateRequest, _Mapping]] = ..., state: _Optional[_Union[EvaluationOperation.State, str]] = ..., progress: _Optional[_Union[EvaluateUpdate.Progress, _Mapping]] = ..., evaluation: _Optional[_Union[Evaluation, _Mapping]] = ..., error: _Optional[str] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., job_id: _Optional[str] = ...) -> None: ...

class ExampleRow(_message.Message):
    __slots__ = ["label", "max_probability", "mutual_information", "predicted", "predictive_entropy", "row"]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    MAX_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    MUTUAL_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    PREDICTIVE_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    label: int
    max_probability: float
    mutual_information: float
    predicted: int
    predictive_entropy: float
    row: int
    def __init__(self, row: _Optional[int] = ..., label: _Optional[int] = ..., predicted: _Optional[int] = ..., max_probability: _Optional[float] = ..., predictive_entropy: _Optional[float] = ..., mutual_information: _Optional[float] = ...) -> None: ...

class Flatness(_message.Message):
    __slots__ = ["anchor_line", "chain", "fisher_ranks", "fisher_trace", "fisher_values", "line_positions", "random_line"]
    ANCHOR_LINE_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    FISHER_RANKS_FIELD_NUMBER: _ClassVar[int]
    FISHER_TRACE_FIELD_NUMBER: _ClassVar[int]
    FISHER_VALUES_FIELD_NUMBER: _ClassVar[int]
    LINE_POSITIONS_FIELD_NUMBER: _ClassVar[int]
    RANDOM_LINE_FIELD_NUMBER: _ClassVar[int]
    anchor_line: _containers.RepeatedScalarFieldContainer[float]
    chain: _types_pb2.ChainId
    fisher_ranks: _containers.RepeatedScalarFieldContainer[int]
    fisher_trace: float
    fisher_values: _containers.RepeatedScalarFieldContainer[float]
    line_positions: _containers.RepeatedScalarFieldContainer[float]
    random_line: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, chain: _Optional[_Union[_types_pb2.ChainId, _Mapping]] = ..., fisher_trace: _Optional[float] = ..., fisher_ranks: _Optional[_Iterable[int]] = ..., fisher_values: _Optional[_Iterable[float]] = ..., line_positions: _Optional[_Iterable[float]] = ..., random_line: _Optional[_Iterable[float]] = ..., anchor_line: _Optional[_Iterable[float]] = ...) -> None: ...

class GetEvaluationRequest(_message.Message):
    __slots__ = ["id"]
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListEvaluationsRequest(_message.Message):
    __slots__ = ["job", "page_size", "page_token"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job: str
    page_size: int
    page_token: str
    def __init__(self, job: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEvaluationsResponse(_message.Message):
    __slots__ = ["evaluations", "next_page_token"]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    evaluations: _containers.RepeatedCompositeFieldContainer[EvaluationOperation]
    next_page_token: str
    def __init__(self, evaluations: _Optional[_Iterable[_Union[EvaluationOperation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Members(_message.Message):
    __slots__ = ["chain", "gradients", "kind", "mean", "probabilities", "variance", "weights"]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    chain: _types_pb2.ChainId
    gradients: _containers.RepeatedScalarFieldContainer[float]
    kind: _types_pb2.DrawKind
    mean: _containers.RepeatedScalarFieldContainer[float]
    probabilities: _containers.RepeatedScalarFieldContainer[float]
    variance: _containers.RepeatedScalarFieldContainer[float]
    weights: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, chain: _Optional[_Union[_types_pb2.ChainId, _Mapping]] = ..., kind: _Optional[_Union[_types_pb2.DrawKind, str]] = ..., weights: _Optional[_Iterable[float]] = ..., probabilities: _Optional[_Iterable[float]] = ..., mean: _Optional[_Iterable[float]] = ..., variance: _Optional[_Iterable[float]] = ..., gradients: _Optional[_Iterable[float]] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ["anytime", "conformal", "conformal_level", "gradients", "inputs", "job", "member_probabilities", "min_draws", "priority", "quantiles", "selection"]
    ANYTIME_FIELD_NUMBER: _ClassVar[int]
    CONFORMAL_FIELD_NUMBER: _ClassVar[int]
    CONFORMAL_LEVEL_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    MEMBER_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    MIN_DRAWS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    anytime: bool
    conformal: str
    conformal_level: float
    gradients: bool
    inputs: Tensor
    job: str
    member_probabilities: bool
    min_draws: int
    priority: str
    quantiles: _containers.RepeatedScalarFieldContainer[float]
    selection: DrawSelection
    def __init__(self, job: _Optional[str] = ..., inputs: _Optional[_Union[Tensor, _Mapping]] = ..., selection: _Optional[_Union[DrawSelection, _Mapping]] = ..., min_draws: _Optional[int] = ..., anytime: bool = ..., member_probabilities: bool = ..., quantiles: _Optional[_Iterable[float]] = ..., priority: _Optional[str] = ..., gradients: bool = ..., conformal: _Optional[str] = ..., conformal_level: _Optional[float] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ["class_names", "draws_in_version", "draws_used", "errors", "interval", "job_id", "mean_gradient", "members", "num_classes", "num_rows", "point", "prediction_set", "quantile_errors", "quantiles", "scores", "version"]
    CLASS_NAMES_FIELD_NUMBER: _ClassVar[int]
    DRAWS_IN_VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAWS_USED_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MEAN_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASSES_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_SET_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    QUANTILE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    class_names: _containers.RepeatedScalarFieldContainer[str]
    draws_in_version: int
    draws_used: int
    errors: PredictiveScores
    interval: _containers.RepeatedScalarFieldContainer[float]
    job_id: str
    mean_gradient: _containers.RepeatedScalarFieldContainer[float]
    members: _containers.RepeatedCompositeFieldContainer[Members]
    num_classes: int
    num_rows: int
    point: str
    prediction_set: _containers.RepeatedScalarFieldContainer[int]
    quantile_errors: _containers.RepeatedScalarFieldContainer[float]
    quantiles: _containers.RepeatedScalarFieldContainer[float]
    scores: PredictiveScores
    version: int
    def __init__(self, num_rows: _Optional[int] = ..., num_classes: _Optional[int] = ..., scores: _Optional[_Union[PredictiveScores, _Mapping]] = ..., errors: _Optional[_Union[PredictiveScores, _Mapping]] = ..., version: _Optional[int] = ..., draws_used: _Optional[int] = ..., draws_in_version: _Optional[int] = ..., job_id: _Optional[str] = ..., point: _Optional[str] = ..., quantiles: _Optional[_Iterable[float]] = ..., members: _Optional[_Iterable[_Union[Members, _Mapping]]] = ..., quantile_errors: _Optional[_Iterable[float]] = ..., class_names: _Optional[_Iterable[str]] = ..., mean_gradient: _Optional[_Iterable[float]] = ..., prediction_set: _Optional[_Iterable[int]] = ..., interval: _Optional[_Iterable[float]] = ...) -> None: ...

class PredictiveScores(_message.Message):
    __slots__ = ["expected_entropy", "log_probability", "max_probability", "mean", "mean_probability", "mutual_information", "predictive_entropy", "variance_aleatoric", "variance_epistemic", "variation_ratio"]
    EXPECTED_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    MAX_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MEAN_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    MUTUAL_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    PREDICTIVE_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_ALEATORIC_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_EPISTEMIC_FIELD_NUMBER: _ClassVar[int]
    VARIATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    expected_entropy: _containers.RepeatedScalarFieldContainer[float]
    log_probability: _containers.RepeatedScalarFieldContainer[float]
    max_probability: _containers.RepeatedScalarFieldContainer[float]
    mean: _containers.RepeatedScalarFieldContainer[float]
    mean_probability: _containers.RepeatedScalarFieldContainer[float]
    mutual_information: _containers.RepeatedScalarFieldContainer[float]
    predictive_entropy: _containers.RepeatedScalarFieldContainer[float]
    variance_aleatoric: _containers.RepeatedScalarFieldContainer[float]
    variance_epistemic: _containers.RepeatedScalarFieldContainer[float]
    variation_ratio: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, mean_probability: _Optional[_Iterable[float]] = ..., log_probability: _Optional[_Iterable[float]] = ..., max_probability: _Optional[_Iterable[float]] = ..., predictive_entropy: _Optional[_Iterable[float]] = ..., expected_entropy: _Optional[_Iterable[float]] = ..., mutual_information: _Optional[_Iterable[float]] = ..., variation_ratio: _Optional[_Iterable[float]] = ..., mean: _Optional[_Iterable[float]] = ..., variance_aleatoric: _Optional[_Iterable[float]] = ..., variance_epistemic: _Optional[_Iterable[float]] = ...) -> None: ...

class ReliabilityBin(_message.Message):
    __slots__ = ["accuracy", "count", "lower", "mean_confidence", "upper"]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    MEAN_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    accuracy: float
    count: int
    lower: float
    mean_confidence: float
    upper: float
    def __init__(self, lower: _Optional[float] = ..., upper: _Optional[float] = ..., count: _Optional[int] = ..., mean_confidence: _Optional[float] = ..., accuracy: _Optional[float] = ...) -> None: ...

class Scores(_message.Message):
    __slots__ = ["accuracy", "brier", "coverage_90", "ece", "ece_equal_mass", "entropy_divergence", "entropy_histogram", "mean_mutual_information", "mean_predictive_entropy", "misclassification_aupr", "misclassification_auroc", "nll", "num_draws", "ood_aupr", "ood_auroc", "ood_auroc_mutual_information", "ood_entropy_histogram", "ood_mean_predictive_entropy", "reliability", "rmse", "temperature", "what"]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    BRIER_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_90_FIELD_NUMBER: _ClassVar[int]
    ECE_EQUAL_MASS_FIELD_NUMBER: _ClassVar[int]
    ECE_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_DIVERGENCE_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    MEAN_MUTUAL_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    MEAN_PREDICTIVE_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    MISCLASSIFICATION_AUPR_FIELD_NUMBER: _ClassVar[int]
    MISCLASSIFICATION_AUROC_FIELD_NUMBER: _ClassVar[int]
    NLL_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAWS_FIELD_NUMBER: _ClassVar[int]
    OOD_AUPR_FIELD_NUMBER: _ClassVar[int]
    OOD_AUROC_FIELD_NUMBER: _ClassVar[int]
    OOD_AUROC_MUTUAL_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    OOD_ENTROPY_HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    OOD_MEAN_PREDICTIVE_ENTROPY_FIELD_NUMBER: _ClassVar[int]
    RELIABILITY_FIELD_NUMBER: _ClassVar[int]
    RMSE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    accuracy: float
    brier: float
    coverage_90: float
    ece: float
    ece_equal_mass: float
    entropy_divergence: float
    entropy_histogram: _containers.RepeatedScalarFieldContainer[int]
    mean_mutual_information: float
    mean_predictive_entropy: float
    misclassification_aupr: float
    misclassification_auroc: float
    nll: float
    num_draws: int
    ood_aupr: float
    ood_auroc: float
    ood_auroc_mutual_information: float
    ood_entropy_histogram: _containers.RepeatedScalarFieldContainer[int]
    ood_mean_predictive_entropy: float
    reliability: _containers.RepeatedCompositeFieldContainer[ReliabilityBin]
    rmse: float
    temperature: float
    what: str
    def __init__(self, what: _Optional[str] = ..., num_draws: _Optional[int] = ..., accuracy: _Optional[float] = ..., nll: _Optional[float] = ..., brier: _Optional[float] = ..., ece: _Optional[float] = ..., ece_equal_mass: _Optional[float] = ..., ood_auroc: _Optional[float] = ..., mean_predictive_entropy: _Optional[float] = ..., mean_mutual_information: _Optional[float] = ..., ood_mean_predictive_entropy: _Optional[float] = ..., ood_auroc_mutual_information: _Optional[float] = ..., temperature: _Optional[float] = ..., rmse: _Optional[float] = ..., coverage_90: _Optional[float] = ..., misclassification_auroc: _Optional[float] = ..., misclassification_aupr: _Optional[float] = ..., ood_aupr: _Optional[float] = ..., reliability: _Optional[_Iterable[_Union[ReliabilityBin, _Mapping]]] = ..., entropy_histogram: _Optional[_Iterable[int]] = ..., ood_entropy_histogram: _Optional[_Iterable[int]] = ..., entropy_divergence: _Optional[float] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ["data", "shape", "type"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    shape: _containers.RepeatedScalarFieldContainer[int]
    type: _types_pb2.InputType
    def __init__(self, type: _Optional[_Union[_types_pb2.InputType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...
