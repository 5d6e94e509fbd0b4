"""Parts of a measurement: processes with a time limit each, whose lines of JSON are the rows of a table."""
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

TAIL_LINES = 40


@dataclasses.dataclass
class Part:
    name: str
    table: str      # parts of one table follow each other
    seconds: float  # its limit
    command: list
    environment: dict = dataclasses.field(default_factory=dict)


class Gpu:
    """Samples of nvidia-smi, five a second, while a part runs. There are none on a host without it."""

    def __init__(self):
        self.samples = []  # (time, share of it with a kernel running in %, memory in MiB)
        self.process = None
        with contextlib.suppress(FileNotFoundError):
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "200"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                busy, memory = line.split(",")
                self.samples.append((time.monotonic(), float(busy), float(memory)))

    def busy_percent(self, begin, end):
        busy = [sample[1] for sample in self.samples if begin <= sample[0] <= end]
        return sum(busy) / len(busy) if busy else None

    def peak_mib(self):
        return max((sample[2] for sample in self.samples), default=None)

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def _tail(file):
    file.seek(0)
    return [line[:400] for line in file.read().splitlines()[-TAIL_LINES:]]


def _read_rows(stdout, gpu, rows):
    """Lines that are no JSON objects are left out. One that begins with another column than the first row, such as the
    second line of chain_rate and rivals, adds to the row before it."""
    for line in stdout:
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if not isinstance(row, dict) or not row:
                continue
            if rows and next(iter(row)) not in rows[0]:
                rows[-1].update(row)
                continue
            if "seconds" in row and "rate" in row:
                row["busy_percent"] = gpu.busy_percent(time.monotonic() - row["seconds"], time.monotonic())
            rows.append(row)


def run(part, seconds_left):
    """The record of a part. Its process group is gone afterwards, whatever it did."""
    limit = min(part.seconds, seconds_left)
    record = {"part": part.name, "table": part.table, "ok": False, "rows": []}
    if limit < 1:
        return {**record, "error": "no time was left"}
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            process = subprocess.Popen(part.command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                                       env={**os.environ, **part.environment})
        except OSError as error:
            return {**record, "error": str(error)}
        began, gpu = time.monotonic(), Gpu()
        reader = threading.Thread(target=_read_rows, args=(process.stdout, gpu, record["rows"]), daemon=True)
        reader.start()
        try:
            status = process.wait(limit)
            record["error"] = f"exit status {status}" if status else None
        except subprocess.TimeoutExpired:
            record["error"] = f"not done after {limit:.0f} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join(5)
        if not reader.is_alive():  # a process that left the group may hold the other end
            process.stdout.close()
        gpu.close()
        record["seconds"] = time.monotonic() - began
        record["ok"] = record["error"] is None
        if not record["ok"]:
            record["log"] = _tail(log)
    for row in record["rows"]:
        if "rate" in row and "model" in row:
            row["peak_mib"] = gpu.peak_mib()
    return record


def _cell(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def print_table(title, rows):
    columns = list(dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, list)))
    lines = [columns] + [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(f"\n== {title}")
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
