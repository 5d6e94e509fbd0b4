from chainfleet.v1 import job_spec_pb2 as _job_spec_pb2
from chainfleet.v1 import types_pb2 as _types_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Alias(_message.Message):
    __slots__ = ["job_id", "name", "version"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    name: str
    version: int
    def __init__(self, name: _Optional[str] = ..., job_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Caller(_message.Message):
    __slots__ = ["expires_at", "limits", "principal", "role", "tenant"]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    expires_at: _timestamp_pb2.Timestamp
    limits: _containers.RepeatedCompositeFieldContainer[TenantLimit]
    principal: str
    role: _types_pb2.Role
    tenant: str
    def __init__(self, principal: _Optional[str] = ..., tenant: _Optional[str] = ..., role: _Optional[_Union[_types_pb2.Role, str]] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., limits: _Optional[_Iterable[_Union[TenantLimit, _Mapping]]] = ...) -> None: ...

class Chain(_message.Message):
    __slots__ = ["attempts", "id", "lease_epoch", "num_draws", "point", "reason", "state", "stats", "step", "total_steps", "warnings", "worker"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAWS_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOTAL_STEPS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    id: _types_pb2.ChainId
    lease_epoch: int
    num_draws: int
    point: int
    reason: str
    state: _types_pb2.ChainState
    stats: _types_pb2.ChainStats
    step: int
    total_steps: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    worker: str
    def __init__(self, id: _Optional[_Union[_types_pb2.ChainId, _Mapping]] = ..., state: _Optional[_Union[_types_pb2.ChainState, str]] = ..., step: _Optional[int] = ..., total_steps: _Optional[int] = ..., num_draws: _Optional[int] = ..., stats: _Optional[_Union[_types_pb2.ChainStats, _Mapping]] = ..., worker: _Optional[str] = ..., lease_epoch: _Optional[int] = ..., attempts: _Optional[int] = ..., reason: _Optional[str] = ..., point: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ["data"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class CreateJobRequest(_message.Message):
    __slots__ = ["only_chain", "request_id", "spec", "validate_only"]
    ONLY_CHAIN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    only_chain: int
    request_id: str
    spec: _job_spec_pb2.JobSpec
    validate_only: bool
    def __init__(self, spec: _Optional[_Union[_job_spec_pb2.JobSpec, _Mapping]] = ..., request_id: _Optional[str] = ..., validate_only: bool = ..., only_chain: _Optional[int] = ...) -> None: ...

class CreateSnapshotRequest(_message.Message):
    __slots__ = ["job"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class DatasetRowValues(_message.Message):
    __slots__ = ["inputs", "labels", "shape", "targets", "type"]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    inputs: bytes
    labels: _containers.RepeatedScalarFieldContainer[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    targets: _containers.RepeatedScalarFieldContainer[float]
    type: _types_pb2.InputType
    def __init__(self, type: _Optional[_Union[_types_pb2.InputType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., inputs: _Optional[bytes] = ..., labels: _Optional[_Iterable[int]] = ..., targets: _Optional[_Iterable[float]] = ...) -> None: ...

class DeleteAliasRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteAliasResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DeleteDatasetRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteDatasetResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DeleteModelRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteModelResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DeleteSnapshotRequest(_message.Message):
    __slots__ = ["job", "version"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    job: str
    version: int
    def __init__(self, job: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class DeleteSnapshotResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DrainWorkerRequest(_message.Message):
    __slots__ = ["deadline_seconds", "worker"]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    deadline_seconds: float
    worker: str
    def __init__(self, worker: _Optional[str] = ..., deadline_seconds: _Optional[float] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ["chain", "fields", "level", "message", "number", "time"]
    class Level(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class FieldsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    INFO: Event.Level
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LEVEL_UNSPECIFIED: Event.Level
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    WARNING: Event.Level
    chain: int
    fields: _containers.ScalarMap[str, str]
    level: Event.Level
    message: str
    number: int
    time: _timestamp_pb2.Timestamp
    def __init__(self, number: _Optional[int] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., level: _Optional[_Union[Event.Level, str]] = ..., message: _Optional[str] = ..., chain: _Optional[int] = ..., fields: _Optional[_Mapping[str, str]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetTracesRequest(_message.Message):
    __slots__ = ["job", "quantity"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    job: str
    quantity: str
    def __init__(self, job: _Optional[str] = ..., quantity: _Optional[str] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ["aliases", "chains", "created_at", "dataset_digest", "diagnostics", "finished_at", "id", "inputs", "intent", "newest_version", "num_chains", "num_draws", "points", "report", "spec", "state", "steps_done", "steps_total", "stopped", "tenant"]
    class Intent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class Diagnostic(_message.Message):
        __slots__ = ["chains", "descriptive", "ess_bulk", "ess_tail", "mcse_mean", "mean", "nested_rhat", "point", "quantity", "ranks", "rhat", "values"]
        class Ranks(_message.Message):
            __slots__ = ["counts", "p_value"]
            COUNTS_FIELD_NUMBER: _ClassVar[int]
            P_VALUE_FIELD_NUMBER: _ClassVar[int]
            counts: _containers.RepeatedScalarFieldContainer[int]
            p_value: float
            def __init__(self, counts: _Optional[_Iterable[int]] = ..., p_value: _Optional[float] = ...) -> None: ...
        CHAINS_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTIVE_FIELD_NUMBER: _ClassVar[int]
        ESS_BULK_FIELD_NUMBER: _ClassVar[int]
        ESS_TAIL_FIELD_NUMBER: _ClassVar[int]
        MCSE_MEAN_FIELD_NUMBER: _ClassVar[int]
        MEAN_FIELD_NUMBER: _ClassVar[int]
        NESTED_RHAT_FIELD_NUMBER: _ClassVar[int]
        POINT_FIELD_NUMBER: _ClassVar[int]
        QUANTITY_FIELD_NUMBER: _ClassVar[int]
        RANKS_FIELD_NUMBER: _ClassVar[int]
        RHAT_FIELD_NUMBER: _ClassVar[int]
        VALUES_FIELD_NUMBER: _ClassVar[int]
        chains: int
        descriptive: bool
        ess_bulk: float
        ess_tail: float
        mcse_mean: float
        mean: float
        nested_rhat: float
        point: int
        quantity: str
        ranks: Job.Diagnostic.Ranks
        rhat: float
        values: int
        def __init__(self, point: _Optional[int] = ..., quantity: _Optional[str] = ..., chains: _Optional[int] = ..., values: _Optional[int] = ..., rhat: _Optional[float] = ..., ess_bulk: _Optional[float] = ..., ess_tail: _Optional[float] = ..., mean: _Optional[float] = ..., mcse_mean: _Optional[float] = ..., descriptive: bool = ..., nested_rhat: _Optional[float] = ..., ranks: _Optional[_Union[Job.Diagnostic.Ranks, _Mapping]] = ...) -> None: ...
    class Inputs(_message.Message):
        __slots__ = ["class_names", "columns", "normalisation", "shape", "target_units", "type"]
        CLASS_NAMES_FIELD_NUMBER: _ClassVar[int]
        COLUMNS_FIELD_NUMBER: _ClassVar[int]
        NORMALISATION_FIELD_NUMBER: _ClassVar[int]
        SHAPE_FIELD_NUMBER: _ClassVar[int]
        TARGET_UNITS_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        class_names: _containers.RepeatedScalarFieldContainer[str]
        columns: _containers.RepeatedCompositeFieldContainer[_types_pb2.TensorSignature]
        normalisation: _types_pb2.Normalisation
        shape: _containers.RepeatedScalarFieldContainer[int]
        target_units: _types_pb2.TargetUnits
        type: _types_pb2.InputType
        def __init__(self, type: _Optional[_Union[_types_pb2.InputType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., normalisation: _Optional[_Union[_types_pb2.Normalisation, _Mapping]] = ..., target_units: _Optional[_Union[_types_pb2.TargetUnits, _Mapping]] = ..., class_names: _Optional[_Iterable[str]] = ..., columns: _Optional[_Iterable[_Union[_types_pb2.TensorSignature, _Mapping]]] = ...) -> None: ...
    class Point(_message.Message):
        __slots__ = ["index", "name", "num_draws", "report"]
        INDEX_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        NUM_DRAWS_FIELD_NUMBER: _ClassVar[int]
        REPORT_FIELD_NUMBER: _ClassVar[int]
        index: int
        name: str
        num_draws: int
        report: Job.Report
        def __init__(self, index: _Optional[int] = ..., name: _Optional[str] = ..., report: _Optional[_Union[Job.Report, _Mapping]] = ..., num_draws: _Optional[int] = ...) -> None: ...
    class Report(_message.Message):
        __slots__ = ["draws_per_chain", "learning_rate", "num_examples", "num_parameters", "prior_precision", "step_size", "stored_bytes", "temperature"]
        DRAWS_PER_CHAIN_FIELD_NUMBER: _ClassVar[int]
        LEARNING_RATE_FIELD_NUMBER: _ClassVar[int]
        NUM_EXAMPLES_FIELD_NUMBER: _ClassVar[int]
        NUM_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
        PRIOR_PRECISION_FIELD_NUMBER: _ClassVar[int]
        STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
        STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
        TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
        draws_per_chain: int
        learning_rate: float
        num_examples: int
        num_parameters: int
        prior_precision: float
        step_size: float
        stored_bytes: int
        temperature: float
        def __init__(self, num_examples: _Optional[int] = ..., prior_precision: _Optional[float] = ..., temperature: _Optional[float] = ..., learning_rate: _Optional[float] = ..., step_size: _Optional[float] = ..., num_parameters: _Optional[int] = ..., draws_per_chain: _Optional[int] = ..., stored_bytes: _Optional[int] = ...) -> None: ...
    class Stopped(_message.Message):
        __slots__ = ["point", "why"]
        POINT_FIELD_NUMBER: _ClassVar[int]
        WHY_FIELD_NUMBER: _ClassVar[int]
        point: int
        why: str
        def __init__(self, point: _Optional[int] = ..., why: _Optional[str] = ...) -> None: ...
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    CANCEL: Job.Intent
    CANCELLED: Job.State
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DATASET_DIGEST_FIELD_NUMBER: _ClassVar[int]
    DELETE: Job.Intent
    DELETING: Job.State
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    FAILED: Job.State
    FINISH: Job.Intent
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    INTENT_UNSPECIFIED: Job.Intent
    NEWEST_VERSION_FIELD_NUMBER: _ClassVar[int]
    NUM_CHAINS_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAWS_FIELD_NUMBER: _ClassVar[int]
    PAUSE: Job.Intent
    PAUSED: Job.State
    PENDING: Job.State
    POINTS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    RUN: Job.Intent
    RUNNING: Job.State
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_UNSPECIFIED: Job.State
    STEPS_DONE_FIELD_NUMBER: _ClassVar[int]
    STEPS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED: Job.State
    SUCCEEDED_EARLY: Job.State
    TENANT_FIELD_NUMBER: _ClassVar[int]
    aliases: _containers.RepeatedScalarFieldContainer[str]
    chains: _containers.RepeatedCompositeFieldContainer[Chain]
    created_at: _timestamp_pb2.Timestamp
    dataset_digest: str
    diagnostics: _containers.RepeatedCompositeFieldContainer[Job.Diagnostic]
    finished_at: _timestamp_pb2.Timestamp
    id: str
    inputs: Job.Inputs
    intent: Job.Intent
    newest_version: int
    num_chains: int
    num_draws: int
    points: _containers.RepeatedCompositeFieldContainer[Job.Point]
    report: Job.Report
    spec: _job_spec_pb2.JobSpec
    state: Job.State
    steps_done: int
    steps_total: int
    stopped: _containers.RepeatedCompositeFieldContainer[Job.Stopped]
    tenant: str
    def __init__(self, id: _Optional[str] = ..., spec: _Optional[_Union[_job_spec_pb2.JobSpec, _Mapping]] = ..., intent: _Optional[_Union[Job.Intent, str]] = ..., state: _Optional[_Union[Job.State, str]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., num_draws: _Optional[int] = ..., steps_done: _Optional[int] = ..., steps_total: _Optional[int] = ..., chains: _Optional[_Iterable[_Union[Chain, _Mapping]]] = ..., newest_version: _Optional[int] = ..., dataset_digest: _Optional[str] = ..., report: _Optional[_Union[Job.Report, _Mapping]] = ..., num_chains: _Optional[int] = ..., points: _Optional[_Iterable[_Union[Job.Point, _Mapping]]] = ..., tenant: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., diagnostics: _Optional[_Iterable[_Union[Job.Diagnostic, _Mapping]]] = ..., stopped: _Optional[_Iterable[_Union[Job.Stopped, _Mapping]]] = ..., inputs: _Optional[_Union[Job.Inputs, _Mapping]] = ...) -> None: ...

class ListAliasesRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAliasesResponse(_message.Message):
    __slots__ = ["aliases", "next_page_token"]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    aliases: _containers.RepeatedCompositeFieldContainer[Alias]
    next_page_token: str
    def __init__(self, aliases: _Optional[_Iterable[_Union[Alias, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListDatasetsRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDatasetsResponse(_message.Message):
    __slots__ = ["datasets", "next_page_token"]
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    datasets: _containers.RepeatedCompositeFieldContainer[_types_pb2.Dataset]
    next_page_token: str
    def __init__(self, datasets: _Optional[_Iterable[_Union[_types_pb2.Dataset, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ["after", "job"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    after: int
    job: str
    def __init__(self, job: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ["events"]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ["page_size", "page_token", "state"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    state: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ["jobs", "next_page_token"]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ["models", "next_page_token"]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[_types_pb2.StoredModel]
    next_page_token: str
    def __init__(self, models: _Optional[_Iterable[_Union[_types_pb2.StoredModel, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListSegmentsRequest(_message.Message):
    __slots__ = ["chain", "job", "page_size", "page_token", "point", "resume_points"]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    RESUME_POINTS_FIELD_NUMBER: _ClassVar[int]
    chain: int
    job: str
    page_size: int
    page_token: str
    point: str
    resume_points: bool
    def __init__(self, job: _Optional[str] = ..., chain: _Optional[int] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., point: _Optional[str] = ..., resume_points: bool = ...) -> None: ...

class ListSegmentsResponse(_message.Message):
    __slots__ = ["next_page_token", "resume_points", "segments"]
    class ChainResume(_message.Message):
        __slots__ = ["chain", "last_digest", "resume_point"]
        CHAIN_FIELD_NUMBER: _ClassVar[int]
        LAST_DIGEST_FIELD_NUMBER: _ClassVar[int]
        RESUME_POINT_FIELD_NUMBER: _ClassVar[int]
        chain: int
        last_digest: str
        resume_point: _types_pb2.ResumePoint
        def __init__(self, chain: _Optional[int] = ..., resume_point: _Optional[_Union[_types_pb2.ResumePoint, _Mapping]] = ..., last_digest: _Optional[str] = ...) -> None: ...
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESUME_POINTS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    resume_points: _containers.RepeatedCompositeFieldContainer[ListSegmentsResponse.ChainResume]
    segments: _containers.RepeatedCompositeFieldContainer[_types_pb2.SegmentRecord]
    def __init__(self, segments: _Optional[_Iterable[_Union[_types_pb2.SegmentRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., resume_points: _Optional[_Iterable[_Union[ListSegmentsResponse.ChainResume, _Mapping]]] = ...) -> None: ...

class ListSnapshotsRequest(_message.Message):
    __slots__ = ["job", "page_size", "page_token"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    job: str
    page_size: int
    page_token: str
    def __init__(self, job: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSnapshotsResponse(_message.Message):
    __slots__ = ["next_page_token", "snapshots"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    snapshots: _containers.RepeatedCompositeFieldContainer[Snapshot]
    def __init__(self, snapshots: _Optional[_Iterable[_Union[Snapshot, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ["next_page_token", "workers"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    def __init__(self, workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PutDatasetRequest(_message.Message):
    __slots__ = ["data", "file", "header"]
    class FileStart(_message.Message):
        __slots__ = ["file_name", "size_bytes", "uri"]
        FILE_NAME_FIELD_NUMBER: _ClassVar[int]
        SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        URI_FIELD_NUMBER: _ClassVar[int]
        file_name: str
        size_bytes: int
        uri: str
        def __init__(self, file_name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., uri: _Optional[str] = ...) -> None: ...
    class Header(_message.Message):
        __slots__ = ["class_names", "name", "num_files", "target", "target_type"]
        CLASS_NAMES_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        NUM_FILES_FIELD_NUMBER: _ClassVar[int]
        TARGET_FIELD_NUMBER: _ClassVar[int]
        TARGET_TYPE_FIELD_NUMBER: _ClassVar[int]
        class_names: _containers.RepeatedScalarFieldContainer[str]
        name: str
        num_files: int
        target: str
        target_type: _types_pb2.TargetType
        def __init__(self, name: _Optional[str] = ..., num_files: _Optional[int] = ..., target: _Optional[str] = ..., target_type: _Optional[_Union[_types_pb2.TargetType, str]] = ..., class_names: _Optional[_Iterable[str]] = ...) -> None: ...
    DATA_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    file: PutDatasetRequest.FileStart
    header: PutDatasetRequest.Header
    def __init__(self, header: _Optional[_Union[PutDatasetRequest.Header, _Mapping]] = ..., file: _Optional[_Union[PutDatasetRequest.FileStart, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class PutModelRequest(_message.Message):
    __slots__ = ["data", "header"]
    class Header(_message.Message):
        __slots__ = ["name", "size_bytes", "uri"]
        NAME_FIELD_NUMBER: _ClassVar[int]
        SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        URI_FIELD_NUMBER: _ClassVar[int]
        name: str
        size_bytes: int
        uri: str
        def __init__(self, name: _Optional[str] = ..., size_bytes: _Optional[int] = ..., uri: _Optional[str] = ...) -> None: ...
    DATA_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    header: PutModelRequest.Header
    def __init__(self, header: _Optional[_Union[PutModelRequest.Header, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ReadRowsRequest(_message.Message):
    __slots__ = ["dataset", "rows"]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, dataset: _Optional[str] = ..., rows: _Optional[_Iterable[int]] = ...) -> None: ...

class ReadSegmentRequest(_message.Message):
    __slots__ = ["job", "object"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    job: str
    object: str
    def __init__(self, job: _Optional[str] = ..., object: _Optional[str] = ...) -> None: ...

class ScaleJobRequest(_message.Message):
    __slots__ = ["chains", "name"]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    chains: int
    name: str
    def __init__(self, name: _Optional[str] = ..., chains: _Optional[int] = ...) -> None: ...

class ServerInfo(_message.Message):
    __slots__ = ["caller", "data_directory", "generation", "oldest_protocol_version", "protocol_version", "started_at", "store_incarnation", "version", "worker_authority"]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    DATA_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    OLDEST_PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    STORE_INCARNATION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WORKER_AUTHORITY_FIELD_NUMBER: _ClassVar[int]
    caller: Caller
    data_directory: str
    generation: int
    oldest_protocol_version: int
    protocol_version: int
    started_at: _timestamp_pb2.Timestamp
    store_incarnation: str
    version: str
    worker_authority: str
    def __init__(self, version: _Optional[str] = ..., protocol_version: _Optional[int] = ..., oldest_protocol_version: _Optional[int] = ..., store_incarnation: _Optional[str] = ..., generation: _Optional[int] = ..., data_directory: _Optional[str] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., worker_authority: _Optional[str] = ..., caller: _Optional[_Union[Caller, _Mapping]] = ...) -> None: ...

class SetAliasRequest(_message.Message):
    __slots__ = ["job", "name", "version"]
    JOB_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    job: str
    name: str
    version: int
    def __init__(self, name: _Optional[str] = ..., job: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class SetIntentRequest(_message.Message):
    __slots__ = ["intent", "name"]
    INTENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    intent: Job.Intent
    name: str
    def __init__(self, name: _Optional[str] = ..., intent: _Optional[_Union[Job.Intent, str]] = ...) -> None: ...

class ShareRequest(_message.Message):
    __slots__ = ["name", "stop", "tenants"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    stop: bool
    tenants: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., tenants: _Optional[_Iterable[str]] = ..., stop: bool = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ["aliases", "created_at", "job_id", "num_draws", "version"]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAWS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    aliases: _containers.RepeatedScalarFieldContainer[str]
    created_at: _timestamp_pb2.Timestamp
    job_id: str
    num_draws: int
    version: int
    def __init__(self, job_id: _Optional[str] = ..., version: _Optional[int] = ..., num_draws: _Optional[int] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., aliases: _Optional[_Iterable[str]] = ...) -> None: ...

class TenantLimit(_message.Message):
    __slots__ = ["limit", "name", "used"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    limit: int
    name: str
    used: int
    def __init__(self, name: _Optional[str] = ..., used: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class Traces(_message.Message):
    __slots__ = ["chains", "quantities", "quantity"]
    class Chain(_message.Message):
        __slots__ = ["chain", "point", "steps", "values"]
        CHAIN_FIELD_NUMBER: _ClassVar[int]
        POINT_FIELD_NUMBER: _ClassVar[int]
        STEPS_FIELD_NUMBER: _ClassVar[int]
        VALUES_FIELD_NUMBER: _ClassVar[int]
        chain: int
        point: int
        steps: _containers.RepeatedScalarFieldContainer[int]
        values: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, chain: _Optional[int] = ..., point: _Optional[int] = ..., steps: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    QUANTITIES_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedCompositeFieldContainer[Traces.Chain]
    quantities: _containers.RepeatedScalarFieldContainer[str]
    quantity: str
    def __init__(self, quantity: _Optional[str] = ..., chains: _Optional[_Iterable[_Union[Traces.Chain, _Mapping]]] = ..., quantities: _Optional[_Iterable[str]] = ...) -> None: ...

class Verification(_message.Message):
    __slots__ = ["chains", "job", "replays"]
    class Chain(_message.Message):
        __slots__ = ["chain", "deleted_segments", "draws", "last_digest", "resume_by_server", "resume_step", "resume_worker", "segments", "unsigned_segments", "workers"]
        CHAIN_FIELD_NUMBER: _ClassVar[int]
        DELETED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
        DRAWS_FIELD_NUMBER: _ClassVar[int]
        LAST_DIGEST_FIELD_NUMBER: _ClassVar[int]
        RESUME_BY_SERVER_FIELD_NUMBER: _ClassVar[int]
        RESUME_STEP_FIELD_NUMBER: _ClassVar[int]
        RESUME_WORKER_FIELD_NUMBER: _ClassVar[int]
        SEGMENTS_FIELD_NUMBER: _ClassVar[int]
        UNSIGNED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
        WORKERS_FIELD_NUMBER: _ClassVar[int]
        chain: int
        deleted_segments: int
        draws: int
        last_digest: str
        resume_by_server: bool
        resume_step: int
        resume_worker: str
        segments: int
        unsigned_segments: int
        workers: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, chain: _Optional[int] = ..., draws: _Optional[int] = ..., segments: _Optional[int] = ..., deleted_segments: _Optional[int] = ..., unsigned_segments: _Optional[int] = ..., workers: _Optional[_Iterable[str]] = ..., last_digest: _Optional[str] = ..., resume_step: _Optional[int] = ..., resume_worker: _Optional[str] = ..., resume_by_server: bool = ...) -> None: ...
    class Replay(_message.Message):
        __slots__ = ["chain", "draws", "first_draw", "last_draw"]
        CHAIN_FIELD_NUMBER: _ClassVar[int]
        DRAWS_FIELD_NUMBER: _ClassVar[int]
        FIRST_DRAW_FIELD_NUMBER: _ClassVar[int]
        LAST_DRAW_FIELD_NUMBER: _ClassVar[int]
        chain: int
        draws: int
        first_draw: int
        last_draw: int
        def __init__(self, chain: _Optional[int] = ..., first_draw: _Optional[int] = ..., last_draw: _Optional[int] = ..., draws: _Optional[int] = ...) -> None: ...
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedCompositeFieldContainer[Verification.Chain]
    job: str
    replays: _containers.RepeatedCompositeFieldContainer[Verification.Replay]
    def __init__(self, job: _Optional[str] = ..., chains: _Optional[_Iterable[_Union[Verification.Chain, _Mapping]]] = ..., replays: _Optional[_Iterable[_Union[Verification.Replay, _Mapping]]] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ["min_interval_seconds", "name"]
    MIN_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    min_interval_seconds: float
    name: str
    def __init__(self, name: _Optional[str] = ..., min_interval_seconds: _Optional[float] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ["chain_slots", "chains", "device", "draining", "host", "id", "seconds_since_sync", "serving"]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    CHAIN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SECONDS_SINCE_SYNC_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    chain_slots: int
    chains: int
    device: str
    draining: bool
    host: str
    id: str
    seconds_since_sync: float
    serving: bool
    def __init__(self, id: _Optional[str] = ..., host: _Optional[str] = ..., device: _Optional[str] = ..., chain_slots: _Optional[int] = ..., chains: _Optional[int] = ..., seconds_since_sync: _Optional[float] = ..., draining: bool = ..., serving: bool = ...) -> None: ...
