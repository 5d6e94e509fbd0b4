from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

ADMIN: Role
CANCELLED: ChainState
CHAIN_STATE_UNSPECIFIED: ChainState
DESCRIPTOR: _descriptor.FileDescriptor
DIVERGED: ChainState
DRAW_KIND_UNSPECIFIED: DrawKind
FAILED: ChainState
FLOAT32: InputType
FLOAT32_TARGETS: TargetType
INPUT_TYPE_UNSPECIFIED: InputType
LABELS: TargetType
LEASED: ChainState
OPERATOR: Role
PENDING: ChainState
PREDICTOR: Role
READER: Role
ROLE_UNSPECIFIED: Role
SUCCEEDED: ChainState
TARGET_TYPE_UNSPECIFIED: TargetType
THETA: DrawKind
THETA_A: DrawKind
UINT8: InputType
WORKER: Role
WRITER: Role

class BlobRef(_message.Message):
    __slots__ = ["name", "sha256", "size_bytes"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    sha256: str
    size_bytes: int
    def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class ChainId(_message.Message):
    __slots__ = ["index", "job"]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    index: int
    job: str
    def __init__(self, job: _Optional[str] = ..., index: _Optional[int] = ...) -> None: ...

class ChainStats(_message.Message):
    __slots__ = ["anchor_distance", "device_bytes", "energy", "metropolis", "report", "step_size", "steps_per_second", "temperature"]
    ANCHOR_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ENERGY_FIELD_NUMBER: _ClassVar[int]
    METROPOLIS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    anchor_distance: float
    device_bytes: int
    energy: float
    metropolis: MetropolisStats
    report: RunReport
    step_size: float
    steps_per_second: float
    temperature: float
    def __init__(self, energy: _Optional[float] = ..., step_size: _Optional[float] = ..., temperature: _Optional[float] = ..., steps_per_second: _Optional[float] = ..., anchor_distance: _Optional[float] = ..., metropolis: _Optional[_Union[MetropolisStats, _Mapping]] = ..., report: _Optional[_Union[RunReport, _Mapping]] = ..., device_bytes: _Optional[int] = ...) -> None: ...

class Dataset(_message.Message):
    __slots__ = ["class_names", "created_at", "digest", "input_shape", "input_type", "name", "normalisation", "num_classes", "num_rows", "shards", "shared_with", "target_type", "target_units", "warnings"]
    CLASS_NAMES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHAPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NORMALISATION_FIELD_NUMBER: _ClassVar[int]
    NUM_CLASSES_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    SHARED_WITH_FIELD_NUMBER: _ClassVar[int]
    TARGET_TYPE_FIELD_NUMBER: _ClassVar[int]
    TARGET_UNITS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    class_names: _containers.RepeatedScalarFieldContainer[str]
    created_at: _timestamp_pb2.Timestamp
    digest: str
    input_shape: _containers.RepeatedScalarFieldContainer[int]
    input_type: InputType
    name: str
    normalisation: Normalisation
    num_classes: int
    num_rows: int
    shards: _containers.RepeatedCompositeFieldContainer[DatasetShard]
    shared_with: _containers.RepeatedScalarFieldContainer[str]
    target_type: TargetType
    target_units: TargetUnits
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[str] = ..., input_type: _Optional[_Union[InputType, str]] = ..., input_shape: _Optional[_Iterable[int]] = ..., num_rows: _Optional[int] = ..., num_classes: _Optional[int] = ..., normalisation: _Optional[_Union[Normalisation, _Mapping]] = ..., shards: _Optional[_Iterable[_Union[DatasetShard, _Mapping]]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., target_type: _Optional[_Union[TargetType, str]] = ..., target_units: _Optional[_Union[TargetUnits, _Mapping]] = ..., class_names: _Optional[_Iterable[str]] = ..., warnings: _Optional[_Iterable[str]] = ..., shared_with: _Optional[_Iterable[str]] = ...) -> None: ...

class DatasetShard(_message.Message):
    __slots__ = ["first_row", "num_rows", "object"]
    FIRST_ROW_FIELD_NUMBER: _ClassVar[int]
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    first_row: int
    num_rows: int
    object: BlobRef
    def __init__(self, first_row: _Optional[int] = ..., num_rows: _Optional[int] = ..., object: _Optional[_Union[BlobRef, _Mapping]] = ...) -> None: ...

class MetropolisStats(_message.Message):
    __slots__ = ["acceptance", "guarded", "kurtosis", "noise_variance", "skew"]
    ACCEPTANCE_FIELD_NUMBER: _ClassVar[int]
    GUARDED_FIELD_NUMBER: _ClassVar[int]
    KURTOSIS_FIELD_NUMBER: _ClassVar[int]
    NOISE_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    SKEW_FIELD_NUMBER: _ClassVar[int]
    acceptance: float
    guarded: float
    kurtosis: float
    noise_variance: float
    skew: float
    def __init__(self, acceptance: _Optional[float] = ..., noise_variance: _Optional[float] = ..., skew: _Optional[float] = ..., kurtosis: _Optional[float] = ..., guarded: _Optional[float] = ...) -> None: ...

class NetworkSignature(_message.Message):
    __slots__ = ["activation_bytes_per_row", "has_dropout", "inputs", "output", "parameters", "statistics", "torch_version"]
    ACTIVATION_BYTES_PER_ROW_FIELD_NUMBER: _ClassVar[int]
    HAS_DROPOUT_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    TORCH_VERSION_FIELD_NUMBER: _ClassVar[int]
    activation_bytes_per_row: int
    has_dropout: bool
    inputs: _containers.RepeatedCompositeFieldContainer[TensorSignature]
    output: TensorSignature
    parameters: _containers.RepeatedCompositeFieldContainer[TensorSignature]
    statistics: _containers.RepeatedCompositeFieldContainer[TensorSignature]
    torch_version: str
    def __init__(self, torch_version: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[TensorSignature, _Mapping]]] = ..., output: _Optional[_Union[TensorSignature, _Mapping]] = ..., parameters: _Optional[_Iterable[_Union[TensorSignature, _Mapping]]] = ..., has_dropout: bool = ..., statistics: _Optional[_Iterable[_Union[TensorSignature, _Mapping]]] = ..., activation_bytes_per_row: _Optional[int] = ...) -> None: ...

class Normalisation(_message.Message):
    __slots__ = ["mean", "stddev"]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STDDEV_FIELD_NUMBER: _ClassVar[int]
    mean: _containers.RepeatedScalarFieldContainer[float]
    stddev: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, mean: _Optional[_Iterable[float]] = ..., stddev: _Optional[_Iterable[float]] = ...) -> None: ...

class ResumePoint(_message.Message):
    __slots__ = ["inline_bytes", "object", "proof", "sha256", "step"]
    INLINE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    inline_bytes: bytes
    object: BlobRef
    proof: ResumeProof
    sha256: str
    step: int
    def __init__(self, step: _Optional[int] = ..., inline_bytes: _Optional[bytes] = ..., object: _Optional[_Union[BlobRef, _Mapping]] = ..., sha256: _Optional[str] = ..., proof: _Optional[_Union[ResumeProof, _Mapping]] = ...) -> None: ...

class ResumeProof(_message.Message):
    __slots__ = ["certificate", "committed_at", "last_digest", "name", "signature", "with_draws"]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    WITH_DRAWS_FIELD_NUMBER: _ClassVar[int]
    certificate: str
    committed_at: _timestamp_pb2.Timestamp
    last_digest: str
    name: str
    signature: str
    with_draws: bool
    def __init__(self, name: _Optional[str] = ..., last_digest: _Optional[str] = ..., signature: _Optional[str] = ..., certificate: _Optional[str] = ..., committed_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., with_draws: bool = ...) -> None: ...

class RunReport(_message.Message):
    __slots__ = ["curvature", "effective_temperature", "gradient_variance", "log_evidence", "noise_ulps", "stable_below", "step", "step_size", "temperature", "tested_step_size"]
    CURVATURE_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    LOG_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    NOISE_ULPS_FIELD_NUMBER: _ClassVar[int]
    STABLE_BELOW_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TESTED_STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
    curvature: float
    effective_temperature: float
    gradient_variance: float
    log_evidence: float
    noise_ulps: float
    stable_below: float
    step: int
    step_size: float
    temperature: float
    tested_step_size: float
    def __init__(self, step: _Optional[int] = ..., step_size: _Optional[float] = ..., temperature: _Optional[float] = ..., gradient_variance: _Optional[float] = ..., effective_temperature: _Optional[float] = ..., noise_ulps: _Optional[float] = ..., curvature: _Optional[float] = ..., stable_below: _Optional[float] = ..., tested_step_size: _Optional[float] = ..., log_evidence: _Optional[float] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ["digest", "first_index", "kinds", "object", "parent_digest", "steps", "weights"]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FIRST_INDEX_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    PARENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    digest: str
    first_index: int
    kinds: _containers.RepeatedScalarFieldContainer[DrawKind]
    object: BlobRef
    parent_digest: str
    steps: _containers.RepeatedScalarFieldContainer[int]
    weights: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, first_index: _Optional[int] = ..., steps: _Optional[_Iterable[int]] = ..., weights: _Optional[_Iterable[float]] = ..., kinds: _Optional[_Iterable[_Union[DrawKind, str]]] = ..., object: _Optional[_Union[BlobRef, _Mapping]] = ..., digest: _Optional[str] = ..., parent_digest: _Optional[str] = ...) -> None: ...

class SegmentRecord(_message.Message):
    __slots__ = ["certificate", "chain", "committed_at", "corrupt", "deleted", "device_kind", "host", "lease_epoch", "numerics_version", "resume_sha256", "resume_step", "segment", "signature", "worker"]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    CORRUPT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    DEVICE_KIND_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    LEASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESUME_SHA256_FIELD_NUMBER: _ClassVar[int]
    RESUME_STEP_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    certificate: str
    chain: ChainId
    committed_at: _timestamp_pb2.Timestamp
    corrupt: bool
    deleted: bool
    device_kind: str
    host: str
    lease_epoch: int
    numerics_version: int
    resume_sha256: str
    resume_step: int
    segment: Segment
    signature: str
    worker: str
    def __init__(self, chain: _Optional[_Union[ChainId, _Mapping]] = ..., segment: _Optional[_Union[Segment, _Mapping]] = ..., lease_epoch: _Optional[int] = ..., worker: _Optional[str] = ..., host: _Optional[str] = ..., device_kind: _Optional[str] = ..., numerics_version: _Optional[int] = ..., committed_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., corrupt: bool = ..., deleted: bool = ..., signature: _Optional[str] = ..., certificate: _Optional[str] = ..., resume_step: _Optional[int] = ..., resume_sha256: _Optional[str] = ...) -> None: ...

class StoredModel(_message.Message):
    __slots__ = ["created_at", "name", "object", "shared_with", "signature"]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    SHARED_WITH_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    created_at: _timestamp_pb2.Timestamp
    name: str
    object: BlobRef
    shared_with: _containers.RepeatedScalarFieldContainer[str]
    signature: NetworkSignature
    def __init__(self, name: _Optional[str] = ..., object: _Optional[_Union[BlobRef, _Mapping]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., signature: _Optional[_Union[NetworkSignature, _Mapping]] = ..., shared_with: _Optional[_Iterable[str]] = ...) -> None: ...

class TargetUnits(_message.Message):
    __slots__ = ["mean", "stddev"]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STDDEV_FIELD_NUMBER: _ClassVar[int]
    mean: float
    stddev: float
    def __init__(self, mean: _Optional[float] = ..., stddev: _Optional[float] = ...) -> None: ...

class TensorSignature(_message.Message):
    __slots__ = ["activation_bytes_per_row", "name", "shape", "type"]
    ACTIVATION_BYTES_PER_ROW_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    activation_bytes_per_row: int
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    type: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., activation_bytes_per_row: _Optional[int] = ...) -> None: ...

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class DrawKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class ChainState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class InputType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class TargetType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
