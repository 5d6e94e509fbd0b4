"""The average over draws as a function of torch, on a device of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .draws import Draws
from .errors import InvalidArgument
from .modules import copy_of
from .prediction import input_scaling
from .v1 import jobs_pb2

if TYPE_CHECKING:
    import torch

    from .job import Job


class TorchAverage:
    """The prediction of a job, made here: `average(x)` for rows like those of the training data.

    Returns the mean probability float32 [n, K] for classes, and the mean float32 [n] in the targets' own units for
    numbers. Both equal the server's prediction to float32 rounding. x: an array or a tensor [n, ...], not standardised;
    gradients reach a float32 tensor unless the module is a ScriptModule.
    Every draw stays in the memory of the device. draws_used: see Prediction.
    """

    def __init__(
        self, job: Job, about: jobs_pb2.Job, draws: list[Draws], module: Any, numbers: bool, device: Any
    ) -> None:
        """`draws`: one of each kind. numbers: whether the job learned numbers.

        Raises InvalidArgument if the module's parameters have other names or shapes.
        """
        import torch

        self._torch, self._job, self._device = torch, job, torch.device(device or "cpu")
        self._module = copy_of(module).to(self._device).eval()
        for parameter in self._module.parameters():
            parameter.requires_grad_(False)
        scale, mean, stddev = input_scaling(about)
        self._scale = float(scale)
        self._mean, self._stddev = (torch.from_numpy(values).to(self._device) for values in (mean, stddev))
        self._units = about.inputs.target_units if numbers else None
        self._bernoulli = about.spec.likelihood.WhichOneof("kind") == "bernoulli"
        wanted = {name: tuple(value.shape) for name, value in self._module.named_parameters()}
        self._draws = [
            (
                draw.weight,
                {
                    name: torch.from_numpy(value.copy()).to(self._device)
                    for name, value in draw.parameters.items()
                    if not name.startswith("likelihood.")  # what the network does not use
                },
            )
            for kind in draws
            for draw in kind
        ]
        if not self._draws:
            raise InvalidArgument(f"job {job.id} has no draws to average", reason="NO_DRAWS", hint="job.wait() first")
        found = {name: tuple(value.shape) for name, value in self._draws[0][1].items()}
        if wanted != found:
            raise InvalidArgument(
                f"the module has parameters {wanted}, the draws have {found}", hint="pass the module that was sampled"
            )
        self.draws_used = len(draws[0])

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

    def _seen(self, x: Any) -> torch.Tensor:
        """Returns the network's inputs, standardised float32; see Job.standardise."""
        torch = self._torch
        if torch.is_tensor(x) and (x.requires_grad or x.device.type != "cpu"):
            self._job.fit(torch.zeros(x.shape, dtype=x.dtype))  # its values stay where they are
        else:
            x = torch.from_numpy(self._job.fit(x).copy())
        return (x.to(self._device).float() * self._scale - self._mean) / self._stddev

    def _outputs(self, parameters: dict[str, torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
        """The module's outputs with these parameters."""
        torch = self._torch
        if not isinstance(self._module, torch.jit.ScriptModule):
            return torch.func.functional_call(self._module, parameters, (inputs,))
        with torch.no_grad():  # functional_call takes no ScriptModule
            for name, value in self._module.named_parameters():
                value.copy_(parameters[name])
            return self._module(inputs)

    def _mean_of(self, outputs: torch.Tensor) -> torch.Tensor:
        torch = self._torch
        if self._units is not None:
            return outputs[:, 0].double() * (self._units.stddev or 1.0) + self._units.mean
        if self._bernoulli:
            one = torch.sigmoid(outputs[:, 0])
            return torch.stack([1 - one, one], dim=1)
        return torch.softmax(outputs, dim=1)
