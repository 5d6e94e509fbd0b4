"""Requests made from OpenAPI documents by schemathesis: none may be answered with a 5xx."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENTS = {"`/openapi.json`": None, "the specification's": os.path.join(HERE, "open_inference_rest.yaml")}
EXAMPLES = 60  # for each operation and phase


def check(fleet):
    """The lines of a table, and the output of each run that found something."""
    base = f"http://{fleet.http_address}"
    lines, faults = ["\n## Requests made from OpenAPI documents\n\n| document | requests |\n| --- | --- |"], []
    program = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "schemathesis")
    for name, path in DOCUMENTS.items():
        with tempfile.TemporaryDirectory() as folder:  # it keeps files of its own
            done = subprocess.run([program, "run", path or base + "/openapi.json", "--url", base, "--checks", "not_a_server_error" + ("" if path else ",response_schema_conformance,status_code_conformance,content_type_conformance"),
                                   "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES), "--seed", "1",
                                   "--request-timeout", "60", "--no-color", "--continue-on-failure"],
                                  capture_output=True, text=True, cwd=folder)
        found = re.search(r"([0-9]+) generated, (.*)", done.stdout)
        lines.append(f"| {name} | {found[1]}: {found[2]} |" if found else f"| {name} | none |")
        if done.returncode != 0:
            faults.append(f"schemathesis with {name}:\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    return lines, faults
