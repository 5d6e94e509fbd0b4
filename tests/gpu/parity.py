"""Runs cuda_parity_test and prints how many of its tests ran, as a line of JSON. Fails where tests fail or are skipped.

    parity.py ALLOWED_SKIPS FILTER COMMAND...
"""
import json
import os
import subprocess
import sys
import tempfile


def main(allowed_skips, selected, *command):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run([*command, f"--gtest_filter={selected}", "--gtest_brief=1", f"--gtest_output=json:{report}"],
                              stdout=sys.stderr)
        tests = []
        if os.path.exists(report):
            with open(report) as f:
                tests = [test for suite in json.load(f)["testsuites"] for test in suite["testsuite"]]
    skipped = [test["name"] for test in tests if test["result"] == "SKIPPED"]
    failed = [test["name"] for test in tests if "failures" in test]
    print(json.dumps({"tests": len(tests), "failed": len(failed), "skipped": len(skipped), "exit_status": done.returncode}), flush=True)
    if done.returncode != 0 or failed or not tests or len(skipped) > allowed_skips:
        sys.exit(f"parity: exit status {done.returncode}, {len(tests)} tests, failed: {failed}, skipped: {skipped}")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
