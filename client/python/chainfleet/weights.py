"""Parameters of networks as safetensors files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import InvalidArgument

_TYPES = {"f2": "F16", "f4": "F32", "f8": "F64", "i4": "I32", "i8": "I64", "u1": "U8", "b1": "BOOL"}


def weights_file(state_dict: Mapping[str, Any]) -> bytes:
    """Tensors of torch or arrays of NumPy by name, as the bytes of a safetensors file; bfloat16 becomes float32.

    Tensors that share memory, such as tied weights, are written once, under the first of their names.
    Raises InvalidArgument for a value of another kind or dtype.
    """
    header, parts, end = {}, [], 0
    written = set()
    for name, value in state_dict.items():
        if hasattr(value, "data_ptr") and value.numel() > 0:
            memory = value.data_ptr(), value.shape, value.stride()
            if memory in written:
                continue
            written.add(memory)
        array = np.ascontiguousarray(_array(name, value))
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {
            "dtype": _TYPES[array.dtype.str[1:]],
            "shape": list(np.shape(value)),
            "data_offsets": [end, end + len(data)],
        }
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _array(name: str, value: Any) -> Any:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    array = np.asarray(value)
    if array.dtype.str[1:] not in _TYPES:
        raise InvalidArgument(
            f"{name} is {array.dtype}: weights are float16, float32 or float64",
            reason="INVALID_MODEL",
            hint="pass module.state_dict(), or arrays of numbers by the names of the parameters",
        )
    return array
