"""A job through the real server, worker and command line on one device: its worker is killed, another goes on, and the
draws are counted and asked for a prediction. Prints one line of JSON.

    service.py DEVICE NETWORK WIDTH BATCH CHAINS STEPS EXAMPLES     CHAINFLEET_BIN: folder of the binaries
"""
import collections
import json
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet import write_npy
from started_fleet import StartedFleet

JOB = """
name: gpu
model: {{builtin: {network}, width: {width}}}
dataset: {{name: generated}}
prior: {{gaussian: {{precision: 10}}}}
sampler: {{emcmc: {{eta: 4.0e-4}}}}
learning_rate: {{constant: 0.001}}
temperature: 1.0e-4
batch_size: {batch}
num_steps: {steps}
chains: {chains}
collect: {{every_steps: {every}, kinds: [theta, theta_a]}}
seed: 7
"""
DRAWS = 4  # for each chain


def put_images(fleet, shape, examples):
    """Noise, the brighter the larger its label: something that can be learnt."""
    dice, size = random.Random(1), shape[0] * shape[1] * shape[2]
    labels = bytes(i % 10 for i in range(examples))
    images = b"".join(bytes(b // 4 + 16 * label for b in dice.randbytes(size)) for label in labels)
    write_npy(fleet.path("x.npy"), "|u1", (examples, *shape), images)
    write_npy(fleet.path("y.npy"), "<i4", (examples,), struct.pack(f"<{examples}i", *labels))
    fleet.run("dataset", "put", "generated", fleet.path("x.npy"), fleet.path("y.npy"), check=True)
    write_npy(fleet.path("asked.npy"), "|u1", (10, *shape), images[:10 * size])


def rate_until(fleet, job, satisfied):
    """Chain-steps per second, from the first state with a step to the first that satisfies."""
    states = []
    for state in fleet.watch(job):
        states.append((time.monotonic(), int(state.get("steps_done", 0))))
        if satisfied(state):
            break
    first = next((s for s in states if s[1] > states[0][1]), states[0])
    elapsed = states[-1][0] - first[0]
    return (states[-1][1] - first[1]) / elapsed if elapsed > 0 else None


def check_draws(fleet, job, chains):
    """Every chain has its draws without a gap; returns how many chains have draws of both workers."""
    segments = collections.defaultdict(list)
    for record in fleet.json("get", "draws", job)["segments"]:
        segments[int(record["chain"].get("index", 0))].append((int(record["lease_epoch"]), record["segment"]))
    assert sorted(segments) == list(range(chains)), f"chains with draws: {sorted(segments)}"
    for chain, records in segments.items():
        index = 0
        for _, segment in records:
            assert int(segment.get("first_index", 0)) == index, f"chain {chain} has a gap at draw {index}"
            index += len(segment["steps"])
        assert index == DRAWS, f"chain {chain} has {index} draws, not {DRAWS}"
    return sum(len({epoch for epoch, _ in records}) > 1 for records in segments.values())


def seconds_of_prediction(fleet, job):
    began = time.monotonic()
    answer = fleet.json("predict", job, "--input", fleet.path("asked.npy"))
    took = time.monotonic() - began
    probability, classes = answer["scores"]["mean_probability"], int(answer["num_classes"])
    sums = [sum(probability[at:at + classes]) for at in range(0, len(probability), classes)]
    assert len(sums) == 10 and all(abs(s - 1) < 1e-4 for s in sums), f"probabilities of 10 images add up to {sums}"
    return took


def measure(fleet, device, network, width, batch, chains, steps):
    """The row of one job whose worker is killed when its first draws are there."""
    def start_worker(name):
        fleet.start(name, "chainfleet-worker", "--server", fleet.address, "--id", name, "--device", device, "--chain-slots", str(chains))

    start_worker("first")
    began = time.monotonic()
    job = fleet.submit(JOB.format(network=network, width=width, batch=batch, steps=steps, chains=chains, every=steps // DRAWS))
    rate_before = rate_until(fleet, job, lambda state: int(state.get("num_draws", 0)) >= chains)
    fleet.kill("first")
    killed = time.monotonic()
    start_worker("second")
    rate_after = rate_until(fleet, job, lambda state: state["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"))
    ended = time.monotonic()
    state = fleet.json("get", "jobs", job)
    assert state["state"] == "SUCCEEDED", state["state"]
    return {"job": f"EMCMC {network}", "chains": chains, "steps": steps, "seconds": ended - began,
            "rate_before_kill": rate_before, "rate_after": rate_after, "seconds_after_kill": ended - killed,
            "draws": int(state["num_draws"]), "chains_resumed": check_draws(fleet, job, chains), "prediction_s": seconds_of_prediction(fleet, job)}


def main(device, network, width, batch, chains, steps, examples):
    fleet = StartedFleet(lease="5s")
    try:
        fleet.start_server(0)
        fleet.wait_until_served()
        put_images(fleet, (1, 28, 28) if network == "lenet5" else (3, 32, 32), examples)
        for longer in (1, 4, 16):  # a fast job may end before its worker is killed
            row = measure(fleet, device, network, width, batch, chains, steps * longer)
            if row["chains_resumed"] > 0:
                break
            fleet.kill("second")
        assert row["chains_resumed"] > 0, "no chain has draws of both workers"
        print(json.dumps(row), flush=True)
    except BaseException:
        print(fleet.logs(), file=sys.stderr)
        raise
    finally:
        fleet.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *map(int, sys.argv[4:]))
