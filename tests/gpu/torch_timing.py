"""How long a call takes on a device of PyTorch."""
import time

import torch


def wait(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def allow_tf32(allowed):
    """The settings of the service: TF32 where the job asks for it, algorithms never chosen by a timing."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


def seconds_per_call(call, device, seconds):
    """The mean over calls for so many seconds, after two that are not counted."""
    for _ in range(2):
        call()
    wait(device)
    calls, begin = 0, time.monotonic()
    while True:
        call()
        calls += 1
        wait(device)
        elapsed = time.monotonic() - begin
        if elapsed >= seconds:
            return elapsed / calls
