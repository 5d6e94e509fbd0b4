#!/usr/bin/env python3
"""Costs of TLS and of client certificates against plaintext: ms from the dial to the first answer, and of a later call.

  CHAINFLEET_BIN=build/release/bin /usr/bin/python3 -B tests/bench/tls_cost.py

The call is GetServerInfo. The three servers take turns; medians.
"""
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
os.environ.setdefault("CHAINFLEET_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))

import python_package  # noqa: F401, first: it says where the next ones are
import fleet as fleets
import grpc
import started_fleet
from chainfleet.v1 import jobs_pb2

ROUNDS, CALLS = 40, 200


def read(path):
    with open(path, "rb") as f:
        return f.read()


def main():
    fleet = started_fleet.StartedFleet(servers=3)
    try:
        pki = fleet.path("pki")
        for words in (["init"], ["issue", "server", "--host", "127.0.0.1"], ["issue", "client"]):
            subprocess.run([os.path.join(fleets.BIN, "chainfleet"), "pki", words[0], "--folder", pki, *words[1:]], check=True, stdout=subprocess.DEVNULL)
        served = ["--tls-cert", f"{pki}/server.crt", "--tls-key", f"{pki}/server.key"]
        trusted = {"root_certificates": read(f"{pki}/ca.crt")}
        shown = {**trusted, "private_key": read(f"{pki}/client.key"), "certificate_chain": read(f"{pki}/client.crt")}
        kinds = {"plaintext": ([], None), "TLS": (served, trusted), "TLS with client certificates": ([*served, "--tls-client-ca", f"{pki}/ca.crt"], shown)}
        for index, (flags, _) in enumerate(kinds.values()):
            fleet.start(f"server-{index}", "chainfleet-server", "--data-dir", fleet.path(f"data-{index}"), "--listen", fleet.addresses[index],
                        "--metrics-listen", "off", "--http-listen", "off", *flags)
        first, later = {name: [] for name in kinds}, {name: [] for name in kinds}
        for turn in range(ROUNDS + 1):
            for index, (name, (_, files)) in enumerate(kinds.items()):
                begin = time.perf_counter()
                options = [("grpc.use_local_subchannel_pool", 1)]
                channel = grpc.secure_channel(fleet.addresses[index], grpc.ssl_channel_credentials(**files), options) if files else grpc.insecure_channel(fleet.addresses[index], options)
                call = channel.unary_unary("/chainfleet.v1.JobService/GetServerInfo", jobs_pb2.GetServerInfoRequest.SerializeToString, jobs_pb2.ServerInfo.FromString)
                call(jobs_pb2.GetServerInfoRequest(), wait_for_ready=True, timeout=30)
                dialled = time.perf_counter()
                for _ in range(CALLS // ROUNDS):
                    call(jobs_pb2.GetServerInfoRequest())
                ended = time.perf_counter()
                channel.close()
                if turn > 0:  # the first waits for the servers
                    first[name].append(1000 * (dialled - begin))
                    later[name].append(1000 * (ended - dialled) / (CALLS // ROUNDS))
        for name in kinds:
            dial, call = statistics.median(first[name]), statistics.median(later[name])
            print(f"{name:29} first answer {dial:6.2f} ms   call {call:6.3f} ms ({call / statistics.median(later['plaintext']):.2f})")
    finally:
        fleet.close()


if __name__ == "__main__":
    main()
