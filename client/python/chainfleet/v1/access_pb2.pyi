from chainfleet.v1 import jobs_pb2 as _jobs_pb2
from chainfleet.v1 import types_pb2 as _types_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackupCopy(_message.Message):
    __slots__ = ["engine", "incarnation", "list", "object_bytes", "objects", "server_version", "state"]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    engine: str
    incarnation: str
    list: _types_pb2.BlobRef
    object_bytes: int
    objects: int
    server_version: str
    state: _types_pb2.BlobRef
    def __init__(self, server_version: _Optional[str] = ..., engine: _Optional[str] = ..., incarnation: _Optional[str] = ..., state: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., list: _Optional[_Union[_types_pb2.BlobRef, _Mapping]] = ..., objects: _Optional[int] = ..., object_bytes: _Optional[int] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class CreateTokenRequest(_message.Message):
    __slots__ = ["lifetime_seconds", "max_uses", "note", "puts_models", "role", "sha256", "tenant"]
    LIFETIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_USES_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PUTS_MODELS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    lifetime_seconds: int
    max_uses: int
    note: str
    puts_models: bool
    role: _types_pb2.Role
    sha256: str
    tenant: str
    def __init__(self, sha256: _Optional[str] = ..., tenant: _Optional[str] = ..., role: _Optional[_Union[_types_pb2.Role, str]] = ..., puts_models: bool = ..., note: _Optional[str] = ..., lifetime_seconds: _Optional[int] = ..., max_uses: _Optional[int] = ...) -> None: ...

class ListAuditRequest(_message.Message):
    __slots__ = ["page_token"]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_token: str
    def __init__(self, page_token: _Optional[str] = ...) -> None: ...

class ListAuditResponse(_message.Message):
    __slots__ = ["lines", "next_page_token"]
    LINES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    next_page_token: str
    def __init__(self, lines: _Optional[_Iterable[str]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListTokensRequest(_message.Message):
    __slots__ = ["page_size", "page_token"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTokensResponse(_message.Message):
    __slots__ = ["next_page_token", "tokens"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ReadObjectRequest(_message.Message):
    __slots__ = ["is_copy", "name"]
    IS_COPY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    is_copy: bool
    name: str
    def __init__(self, name: _Optional[str] = ..., is_copy: bool = ...) -> None: ...

class RestoreRequest(_message.Message):
    __slots__ = ["data", "header"]
    class Header(_message.Message):
        __slots__ = ["file", "size_bytes"]
        FILE_FIELD_NUMBER: _ClassVar[int]
        SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        file: str
        size_bytes: int
        def __init__(self, file: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...
    DATA_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    header: RestoreRequest.Header
    def __init__(self, header: _Optional[_Union[RestoreRequest.Header, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class RestoreResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class RevokeTokenRequest(_message.Message):
    __slots__ = ["id"]
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class RevokeTokenResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Token(_message.Message):
    __slots__ = ["created_at", "created_by", "expires_at", "id", "max_uses", "note", "puts_models", "role", "tenant", "uses"]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MAX_USES_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PUTS_MODELS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    created_at: _timestamp_pb2.Timestamp
    created_by: str
    expires_at: _timestamp_pb2.Timestamp
    id: str
    max_uses: int
    note: str
    puts_models: bool
    role: _types_pb2.Role
    tenant: str
    uses: int
    def __init__(self, id: _Optional[str] = ..., tenant: _Optional[str] = ..., role: _Optional[_Union[_types_pb2.Role, str]] = ..., puts_models: bool = ..., note: _Optional[str] = ..., created_by: _Optional[str] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., max_uses: _Optional[int] = ..., uses: _Optional[int] = ...) -> None: ...
