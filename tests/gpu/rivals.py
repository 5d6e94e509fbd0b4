"""Chain-steps per second of Entropy-MCMC in other frameworks, the same step as chain_rate's: each chain has a minibatch of
its own, the gradient of its potential and noise for both of its vectors.

    rivals.py loop|vmap|jax DEVICE NETWORK BATCH CHAINS float32|tf32 SECONDS

loop   PyTorch, one chain after another      vmap   torch.func.vmap over chains      jax   vmap within a jitted lax.scan
"""
import json
import sys
import time

import networks

EXAMPLES = 4096
STEP, NOISE, PRECISION, COUPLING = 1e-8, 1e-6, 25.0, 2500.0


def torch_rival(framework, device, name, batch, chains, precision, seconds):
    import torch
    import torch.nn.functional as F

    from torch_timing import allow_tf32, wait

    class Ops:
        conv = staticmethod(lambda x, w, b, stride, padding: F.conv2d(x, w, b, stride, padding))
        linear = staticmethod(F.linear)
        relu = staticmethod(F.relu)
        pool = staticmethod(lambda x: F.max_pool2d(x, 2))
        flatten = staticmethod(lambda x: x.flatten(1))
        mean = staticmethod(lambda x: x.mean((2, 3)))
        norm = staticmethod(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))

        @staticmethod
        def frn(x, w, b, threshold):
            x = x * torch.rsqrt(x.square().mean((2, 3), keepdim=True) + 1e-6)
            x = x * w[:, None, None] + b[:, None, None]
            return x if threshold is None else torch.maximum(x, threshold[:, None, None])

    allow_tf32(precision == "tf32")
    shape, layers = networks.NETWORKS[name]
    images = torch.randint(0, 256, (EXAMPLES, *shape), dtype=torch.uint8, device=device)
    labels = torch.randint(0, 10, (EXAMPLES,), device=device)

    def energy(parameters, ids):
        x = (images[ids].float() / 255 - 0.5) / 0.29
        logits = networks.forward(layers, iter(parameters), x, Ops)
        return F.cross_entropy(logits, labels[ids], reduction="sum") * (EXAMPLES / batch)

    theta = [torch.randn(chains, *p, device=device) * 0.05 for p in networks.parameter_shapes(name)]
    anchor = [t.clone() for t in theta]
    gradients_of_all = torch.func.vmap(torch.func.grad(energy))
    if framework == "vmap":
        starts = [(theta, anchor)]
    else:
        starts = [([t[c].clone().requires_grad_() for t in theta], [a[c].clone() for a in anchor]) for c in range(chains)]

    def update(theta, anchor, gradients):
        with torch.no_grad():
            pull = torch._foreach_sub(theta, anchor)
            torch._foreach_add_(gradients, theta, alpha=PRECISION)
            torch._foreach_add_(gradients, pull, alpha=COUPLING)
            torch._foreach_add_(theta, gradients, alpha=-STEP)
            torch._foreach_add_(anchor, pull, alpha=STEP * COUPLING)
            for vector in (theta, anchor):
                torch._foreach_add_(vector, [torch.randn_like(v) for v in vector], alpha=NOISE)

    def step():
        for theta, anchor in starts:
            if framework == "vmap":
                ids = torch.randint(0, EXAMPLES, (chains, batch), device=device)
                gradients = list(gradients_of_all(theta, ids))
            else:
                ids = torch.randint(0, EXAMPLES, (batch,), device=device)
                gradients = list(torch.autograd.grad(energy(theta, ids), theta))
            update(theta, anchor, gradients)

    for _ in range(2):
        step()
    wait(device)
    steps, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        step()
        steps += 1
    wait(device)
    elapsed = time.monotonic() - begin
    yield steps, elapsed
    if device.startswith("cuda"):
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            step()
            wait(device)
        kernels = [e for e in profiled.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        kernels = [e for e in kernels if not e.name.startswith(("Memcpy", "Memset"))]
        yield {"launches_per_step": len(kernels), "kernel_ms_per_step": 1e-3 * sum(e.time_range.elapsed_us() for e in kernels)}


def jax_rival(device, name, batch, chains, precision, seconds):
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if precision == "tf32" else "highest")

    class Ops:
        relu = staticmethod(jax.nn.relu)
        flatten = staticmethod(lambda x: x.reshape(x.shape[0], -1))
        mean = staticmethod(lambda x: x.mean((2, 3)))
        linear = staticmethod(lambda x, w, b: x @ w.T + b)
        pool = staticmethod(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))

        @staticmethod
        def conv(x, w, b, stride, padding):
            x = lax.conv_general_dilated(x, w, (stride, stride), 2 * [(padding, padding)],
                                         dimension_numbers=("NCHW", "OIHW", "NCHW"))
            return x if b is None else x + b[:, None, None]

        @staticmethod
        def norm(x, w, b):
            mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
            return (x - mean) * lax.rsqrt(variance + 1e-5) * w[:, None, None] + b[:, None, None]

        @staticmethod
        def frn(x, w, b, threshold):
            x = x * lax.rsqrt((x * x).mean((2, 3), keepdims=True) + 1e-6) * w[:, None, None] + b[:, None, None]
            return x if threshold is None else jnp.maximum(x, threshold[:, None, None])

    shape, layers = networks.NETWORKS[name]
    key = jax.random.PRNGKey(1)
    images = jax.random.randint(key, (EXAMPLES, *shape), 0, 256).astype(jnp.uint8)
    labels = jax.random.randint(key, (EXAMPLES,), 0, 10)
    theta = [0.05 * jax.random.normal(jax.random.fold_in(key, i), (chains, *p)) for i, p in enumerate(networks.parameter_shapes(name))]
    scanned = 10

    def energy(parameters, ids):
        x = (images[ids].astype(jnp.float32) / 255 - 0.5) / 0.29
        logits = networks.forward(layers, iter(parameters), x, Ops)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[ids][:, None], 1)
        return -chosen.sum() * (EXAMPLES / batch)

    def step(carry, key):
        theta, anchor = carry
        keys = jax.random.split(key, 1 + 2 * len(theta))
        gradients = jax.vmap(jax.grad(energy))(theta, jax.random.randint(keys[0], (chains, batch), 0, EXAMPLES))
        noise = [NOISE * jax.random.normal(k, t.shape) for k, t in zip(keys[1:], theta + anchor)]
        pull = [COUPLING * (t - a) for t, a in zip(theta, anchor)]
        new_theta = [t - STEP * (g + PRECISION * t + p) + n for t, g, p, n in zip(theta, gradients, pull, noise)]
        new_anchor = [a + STEP * p + n for a, p, n in zip(anchor, pull, noise[len(theta):])]
        return (new_theta, new_anchor), None

    run = jax.jit(lambda carry, key: lax.scan(step, carry, jax.random.split(key, scanned))[0])
    carry = jax.block_until_ready(run((theta, [t + 0 for t in theta]), key))
    steps, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        carry = jax.block_until_ready(run(carry, jax.random.fold_in(key, steps)))
        steps += scanned
    yield steps, time.monotonic() - begin


def main(framework, device, name, batch, chains, precision, seconds):
    arguments = (device, name, batch, chains, precision, seconds)
    results = jax_rival(*arguments) if framework == "jax" else torch_rival(framework, *arguments)
    steps, elapsed = next(results)
    print(json.dumps({"what": {"loop": "PyTorch loop", "vmap": "torch.func.vmap", "jax": "JAX vmap, scan"}[framework], "model": name,
                      "chains": chains, "precision": precision, "batch": batch, "rate": steps * chains / elapsed,
                      "ms_per_step": 1e3 * elapsed / steps, "steps": steps, "seconds": elapsed}), flush=True)
    for counted in results:
        print(json.dumps(counted), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6], float(sys.argv[7]))
