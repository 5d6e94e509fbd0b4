"""The average over draws as a function of torch, on a device of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import json_format

from .draws import Draw, Draws
from .errors import InvalidArgument
from .modules import copy_of, evaluated, is_exported, network_file, split, takes_indices
from .prediction import check_rows, input_scaling, learns_numbers, parts_of_job
from .v1 import jobs_pb2

if TYPE_CHECKING:
    import torch


class TorchAverage:
    """The prediction of a job, made here: `average(x)` for rows like those of the training data.

    Returns the mean probability float32 [n, K] for classes, and the mean float32 [n] in the targets' own units for
    numbers. Both equal the server's prediction to float32 rounding. x: an array or a tensor [n, ...], not standardised;
    gradients reach a float32 tensor unless the module is a ScriptModule.
    Parameters that the job does not sample keep the module's values, which must be those of the network's file.
    Every draw stays in the memory of the device. draws_used, class_names: see Prediction.
    """

    def __init__(self, about: jobs_pb2.Job, draws: Sequence[Draws | list[Draw]], module: Any, device: Any) -> None:
        """`draws`: those of each kind.

        Raises InvalidArgument if the module's parameters have other names or shapes.
        """
        import torch

        self._torch, self._about, self._device = torch, about, torch.device(device or "cpu")
        self._module = evaluated(copy_of(module).to(self._device))
        self._parts = parts_of_job(about)
        self._indices = not self._parts and takes_indices(self._module, about.inputs.shape)
        for parameter in self._module.parameters():
            parameter.requires_grad_(False)
        scale, mean, stddev = input_scaling(about)
        self._scale = float(scale)
        self._mean, self._stddev = (torch.from_numpy(values).to(self._device) for values in (mean, stddev))
        self._units = about.inputs.target_units if learns_numbers(about) else None
        self._bernoulli = about.spec.likelihood.WhichOneof("kind") == "bernoulli"
        self._draws = [
            (
                draw.weight,
                {
                    name: torch.from_numpy(value.copy()).to(self._device)
                    for name, value in draw.parameters.items()
                    if not name.startswith("likelihood.")  # the network does not use these
                },
            )
            for kind in draws
            for draw in kind
        ]
        if not self._draws:
            raise InvalidArgument(f"job {about.id} has no draws to average", reason="NO_DRAWS", hint="job.wait() first")
        found = {name: tuple(value.shape) for name, value in self._draws[0][1].items()}
        sampled = () if about.spec.sample else dict(self._module.named_parameters())  # else those of the draws
        tensors = (*self._module.named_parameters(), *self._module.named_buffers())
        wanted = {name: tuple(value.shape) for name, value in tensors if name in found or name in sampled}
        if wanted != found:
            raise InvalidArgument(
                f"the module has parameters {wanted}, the draws have {found}",
                reason="INVALID_MODEL",
                hint="pass the module that was sampled",
            )
        self.draws_used, self.class_names = len(draws[0]), tuple(about.inputs.class_names)

    def __call__(self, x: Any) -> torch.Tensor:
        """Raises InvalidArgument if x does not fit the job."""
        inputs = self._seen(x)
        total, weights = None, 0.0
        for weight, parameters in self._draws:
            part = weight * self._mean_of(self._outputs(parameters, inputs)).double()
            total = part if total is None else total + part
            weights += weight
        assert total is not None
        return (total / weights).float()

    def save(self, folder: Path) -> None:
        """Writes what `load` reads, without a server: job.json, module.pt2 (or module.pt of TorchScript) and draws.npz.

        Raises InvalidArgument if torch.export does not take the module.
        """
        kept = jobs_pb2.Job(id=self._about.id, spec=self._about.spec, inputs=self._about.inputs)
        module, _ = network_file(copy_of(self._module).cpu(), self._about.inputs.shape, self._parts)
        (folder / "job.json").write_text(json_format.MessageToJson(kept), encoding="utf-8")
        exported = is_exported(module)
        (folder / ("module.pt2" if exported else "module.pt")).write_bytes(module)
        first: dict[int, str] = {}  # a parameter with several names is several in the module of a .pt2 file
        arrays: dict[str, Any] = {}
        buffers = self._module.named_buffers()  # statistics of batch norm that trained
        for name, value in (*self._module.named_parameters(remove_duplicate=not exported), *buffers):
            sampled = first.setdefault(id(value), name)
            if sampled not in self._draws[0][1]:
                continue  # the module of the file has its value
            arrays[f"parameters/{name}"] = np.stack(
                [parameters[sampled].cpu().numpy() for _, parameters in self._draws]
            )
        weights = np.array([weight for weight, _ in self._draws], np.float64)
        np.savez(folder / "draws.npz", weights=weights, draws_used=np.int64(self.draws_used), **arrays)

    @classmethod
    def load(cls, folder: Path, device: Any = None) -> TorchAverage:
        """Loads the files that `save` wrote. It runs the module in `folder`: load only files that you trust."""
        import torch
        from torch.export.passes import move_to_device_pass

        about = json_format.Parse((folder / "job.json").read_text(encoding="utf-8"), jobs_pb2.Job())
        with np.load(folder / "draws.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        weights, used = arrays.pop("weights"), int(arrays.pop("draws_used"))
        draws = [
            Draw(0, i, 0, float(weight), "", {name.partition("/")[2]: value[i, ...] for name, value in arrays.items()})
            for i, weight in enumerate(weights)
        ]
        if (folder / "module.pt").exists():
            module = torch.jit.load(folder / "module.pt", map_location="cpu")
        else:
            program = torch.export.load(folder / "module.pt2")
            module = move_to_device_pass(program, str(device or "cpu")).module()
        average = cls(about, [draws], module, device)
        average.draws_used = used
        return average

    def _seen(self, x: Any) -> tuple[torch.Tensor, ...]:
        """Returns the network's inputs: standardised float32, see Job.standardise, or indices and masks."""
        torch = self._torch
        if torch.is_tensor(x) and (x.requires_grad or x.device.type != "cpu"):
            checked = check_rows(torch.zeros(x.shape, dtype=x.dtype), self._about)
            x = x.reshape(checked.shape)  # its values stay where they are
        else:
            x = torch.from_numpy(check_rows(x, self._about).copy())
        seen = (x.to(self._device).float() * self._scale - self._mean) / self._stddev
        if self._parts:
            return split(seen, self._parts)
        return (seen.round().long() if self._indices else seen,)

    def _outputs(self, parameters: dict[str, torch.Tensor], inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """The module's outputs with these parameters."""
        torch = self._torch
        if not isinstance(self._module, torch.jit.ScriptModule):
            return torch.func.functional_call(self._module, parameters, inputs)
        with torch.no_grad():  # functional_call takes no ScriptModule
            for name, value in self._module.named_parameters():
                value.copy_(parameters[name])
            return self._module(*inputs)

    def _mean_of(self, outputs: torch.Tensor) -> torch.Tensor:
        torch = self._torch
        if self._units is not None:
            return outputs[:, 0].double() * (self._units.stddev or 1.0) + self._units.mean
        if self._bernoulli:
            return torch.sigmoid(torch.stack([-outputs[:, 0], outputs[:, 0]], dim=1))
        return torch.softmax(outputs, dim=1)
