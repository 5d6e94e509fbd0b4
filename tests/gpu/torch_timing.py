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
    """The mean over about so many seconds of calls issued without a wait between them."""
    for _ in range(2):
        call()
        wait(device)
    begin = time.monotonic()
    call()
    wait(device)
    calls = int(min(max(seconds / (time.monotonic() - begin), 1), 1000))
    begin = time.monotonic()
    for _ in range(calls):
        call()
    wait(device)
    return (time.monotonic() - begin) / calls
