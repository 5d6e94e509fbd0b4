from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Layer(_message.Message):
    __slots__ = ["attention", "avg_pool", "batch_norm", "concat", "conv", "conv1d", "dropout", "embedding", "flatten", "frn", "gelu", "global_avg_pool", "group_norm", "layer_norm", "leaky_relu", "linear", "max_pool", "position", "relu", "residual", "silu", "softplus", "tanh", "to_sequence"]
    class Attention(_message.Message):
        __slots__ = ["heads"]
        HEADS_FIELD_NUMBER: _ClassVar[int]
        heads: int
        def __init__(self, heads: _Optional[int] = ...) -> None: ...
    class AvgPool(_message.Message):
        __slots__ = ["size", "stride"]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        STRIDE_FIELD_NUMBER: _ClassVar[int]
        size: int
        stride: int
        def __init__(self, size: _Optional[int] = ..., stride: _Optional[int] = ...) -> None: ...
    class BatchNorm(_message.Message):
        __slots__ = ["epsilon"]
        EPSILON_FIELD_NUMBER: _ClassVar[int]
        epsilon: float
        def __init__(self, epsilon: _Optional[float] = ...) -> None: ...
    class Concat(_message.Message):
        __slots__ = ["branch"]
        BRANCH_FIELD_NUMBER: _ClassVar[int]
        branch: _containers.RepeatedCompositeFieldContainer[Layer]
        def __init__(self, branch: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ...) -> None: ...
    class Conv(_message.Message):
        __slots__ = ["bias", "groups", "kernel", "out_channels", "padding", "stride"]
        BIAS_FIELD_NUMBER: _ClassVar[int]
        GROUPS_FIELD_NUMBER: _ClassVar[int]
        KERNEL_FIELD_NUMBER: _ClassVar[int]
        OUT_CHANNELS_FIELD_NUMBER: _ClassVar[int]
        PADDING_FIELD_NUMBER: _ClassVar[int]
        STRIDE_FIELD_NUMBER: _ClassVar[int]
        bias: bool
        groups: int
        kernel: int
        out_channels: int
        padding: int
        stride: int
        def __init__(self, out_channels: _Optional[int] = ..., kernel: _Optional[int] = ..., stride: _Optional[int] = ..., padding: _Optional[int] = ..., groups: _Optional[int] = ..., bias: bool = ...) -> None: ...
    class Conv1d(_message.Message):
        __slots__ = ["bias", "kernel", "out_channels", "padding", "stride"]
        BIAS_FIELD_NUMBER: _ClassVar[int]
        KERNEL_FIELD_NUMBER: _ClassVar[int]
        OUT_CHANNELS_FIELD_NUMBER: _ClassVar[int]
        PADDING_FIELD_NUMBER: _ClassVar[int]
        STRIDE_FIELD_NUMBER: _ClassVar[int]
        bias: bool
        kernel: int
        out_channels: int
        padding: int
        stride: int
        def __init__(self, out_channels: _Optional[int] = ..., kernel: _Optional[int] = ..., stride: _Optional[int] = ..., padding: _Optional[int] = ..., bias: bool = ...) -> None: ...
    class Dropout(_message.Message):
        __slots__ = ["rate"]
        RATE_FIELD_NUMBER: _ClassVar[int]
        rate: float
        def __init__(self, rate: _Optional[float] = ...) -> None: ...
    class Embedding(_message.Message):
        __slots__ = ["count", "padding", "width"]
        COUNT_FIELD_NUMBER: _ClassVar[int]
        PADDING_FIELD_NUMBER: _ClassVar[int]
        WIDTH_FIELD_NUMBER: _ClassVar[int]
        count: int
        padding: int
        width: int
        def __init__(self, count: _Optional[int] = ..., width: _Optional[int] = ..., padding: _Optional[int] = ...) -> None: ...
    class Empty(_message.Message):
        __slots__ = []
        def __init__(self) -> None: ...
    class Frn(_message.Message):
        __slots__ = ["epsilon", "threshold"]
        EPSILON_FIELD_NUMBER: _ClassVar[int]
        THRESHOLD_FIELD_NUMBER: _ClassVar[int]
        epsilon: float
        threshold: bool
        def __init__(self, epsilon: _Optional[float] = ..., threshold: bool = ...) -> None: ...
    class GroupNorm(_message.Message):
        __slots__ = ["epsilon", "groups"]
        EPSILON_FIELD_NUMBER: _ClassVar[int]
        GROUPS_FIELD_NUMBER: _ClassVar[int]
        epsilon: float
        groups: int
        def __init__(self, groups: _Optional[int] = ..., epsilon: _Optional[float] = ...) -> None: ...
    class LayerNorm(_message.Message):
        __slots__ = ["epsilon"]
        EPSILON_FIELD_NUMBER: _ClassVar[int]
        epsilon: float
        def __init__(self, epsilon: _Optional[float] = ...) -> None: ...
    class LeakyRelu(_message.Message):
        __slots__ = ["slope"]
        SLOPE_FIELD_NUMBER: _ClassVar[int]
        slope: float
        def __init__(self, slope: _Optional[float] = ...) -> None: ...
    class Linear(_message.Message):
        __slots__ = ["bias", "outputs"]
        BIAS_FIELD_NUMBER: _ClassVar[int]
        OUTPUTS_FIELD_NUMBER: _ClassVar[int]
        bias: bool
        outputs: int
        def __init__(self, outputs: _Optional[int] = ..., bias: bool = ...) -> None: ...
    class MaxPool(_message.Message):
        __slots__ = ["padding", "size", "stride"]
        PADDING_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        STRIDE_FIELD_NUMBER: _ClassVar[int]
        padding: int
        size: int
        stride: int
        def __init__(self, size: _Optional[int] = ..., stride: _Optional[int] = ..., padding: _Optional[int] = ...) -> None: ...
    class Residual(_message.Message):
        __slots__ = ["branch", "shortcut"]
        BRANCH_FIELD_NUMBER: _ClassVar[int]
        SHORTCUT_FIELD_NUMBER: _ClassVar[int]
        branch: _containers.RepeatedCompositeFieldContainer[Layer]
        shortcut: _containers.RepeatedCompositeFieldContainer[Layer]
        def __init__(self, branch: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ..., shortcut: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ...) -> None: ...
    class ToSequence(_message.Message):
        __slots__ = ["width"]
        WIDTH_FIELD_NUMBER: _ClassVar[int]
        width: int
        def __init__(self, width: _Optional[int] = ...) -> None: ...
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    AVG_POOL_FIELD_NUMBER: _ClassVar[int]
    BATCH_NORM_FIELD_NUMBER: _ClassVar[int]
    CONCAT_FIELD_NUMBER: _ClassVar[int]
    CONV1D_FIELD_NUMBER: _ClassVar[int]
    CONV_FIELD_NUMBER: _ClassVar[int]
    DROPOUT_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    FLATTEN_FIELD_NUMBER: _ClassVar[int]
    FRN_FIELD_NUMBER: _ClassVar[int]
    GELU_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_AVG_POOL_FIELD_NUMBER: _ClassVar[int]
    GROUP_NORM_FIELD_NUMBER: _ClassVar[int]
    LAYER_NORM_FIELD_NUMBER: _ClassVar[int]
    LEAKY_RELU_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    MAX_POOL_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    RELU_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    SILU_FIELD_NUMBER: _ClassVar[int]
    SOFTPLUS_FIELD_NUMBER: _ClassVar[int]
    TANH_FIELD_NUMBER: _ClassVar[int]
    TO_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    attention: Layer.Attention
    avg_pool: Layer.AvgPool
    batch_norm: Layer.BatchNorm
    concat: Layer.Concat
    conv: Layer.Conv
    conv1d: Layer.Conv1d
    dropout: Layer.Dropout
    embedding: Layer.Embedding
    flatten: Layer.Empty
    frn: Layer.Frn
    gelu: Layer.Empty
    global_avg_pool: Layer.Empty
    group_norm: Layer.GroupNorm
    layer_norm: Layer.LayerNorm
    leaky_relu: Layer.LeakyRelu
    linear: Layer.Linear
    max_pool: Layer.MaxPool
    position: Layer.Empty
    relu: Layer.Empty
    residual: Layer.Residual
    silu: Layer.Empty
    softplus: Layer.Empty
    tanh: Layer.Empty
    to_sequence: Layer.ToSequence
    def __init__(self, conv: _Optional[_Union[Layer.Conv, _Mapping]] = ..., linear: _Optional[_Union[Layer.Linear, _Mapping]] = ..., batch_norm: _Optional[_Union[Layer.BatchNorm, _Mapping]] = ..., frn: _Optional[_Union[Layer.Frn, _Mapping]] = ..., relu: _Optional[_Union[Layer.Empty, _Mapping]] = ..., max_pool: _Optional[_Union[Layer.MaxPool, _Mapping]] = ..., avg_pool: _Optional[_Union[Layer.AvgPool, _Mapping]] = ..., global_avg_pool: _Optional[_Union[Layer.Empty, _Mapping]] = ..., flatten: _Optional[_Union[Layer.Empty, _Mapping]] = ..., dropout: _Optional[_Union[Layer.Dropout, _Mapping]] = ..., residual: _Optional[_Union[Layer.Residual, _Mapping]] = ..., concat: _Optional[_Union[Layer.Concat, _Mapping]] = ..., gelu: _Optional[_Union[Layer.Empty, _Mapping]] = ..., silu: _Optional[_Union[Layer.Empty, _Mapping]] = ..., tanh: _Optional[_Union[Layer.Empty, _Mapping]] = ..., softplus: _Optional[_Union[Layer.Empty, _Mapping]] = ..., leaky_relu: _Optional[_Union[Layer.LeakyRelu, _Mapping]] = ..., layer_norm: _Optional[_Union[Layer.LayerNorm, _Mapping]] = ..., group_norm: _Optional[_Union[Layer.GroupNorm, _Mapping]] = ..., embedding: _Optional[_Union[Layer.Embedding, _Mapping]] = ..., to_sequence: _Optional[_Union[Layer.ToSequence, _Mapping]] = ..., position: _Optional[_Union[Layer.Empty, _Mapping]] = ..., attention: _Optional[_Union[Layer.Attention, _Mapping]] = ..., conv1d: _Optional[_Union[Layer.Conv1d, _Mapping]] = ...) -> None: ...
