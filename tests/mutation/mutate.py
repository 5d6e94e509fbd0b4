#!/usr/bin/env python3
"""A mutated copy of a source, and the judgement that a test noticed it.

    mutate.py write SOURCE REPLACE_FILE WITH_FILE OUTPUT   the copy; the text to replace must occur exactly once
    mutate.py judge BINARY FILTER                          0 if every test selected ran and failed an assertion
"""
import json
import os
import subprocess
import sys
import tempfile


def mutate(source, replace, replacement):
    """`source` with its only `replace` replaced. ValueError if there is none, or more than one, or nothing changes."""
    count = source.count(replace) if replace else 0
    if count != 1:
        raise ValueError(f"the text to replace occurs {count} times, not once: {replace!r}")
    if replace == replacement:
        raise ValueError(f"the mutation changes nothing: {replace!r}")
    return source.replace(replace, replacement)


def survivors(returncode, report):
    """Why the mutant is not killed, a line each; empty if it is. `report` is GoogleTest's, None if none was written."""
    if returncode != 1 or report is None:
        return [f"the test binary did not run to its end with failures: exit status {returncode}"]
    complaints, ran = [], 0
    for suite in report.get("testsuites", []):
        for test in suite.get("testsuite", []):
            name = f"{suite['name']}.{test['name']}"
            ran += 1
            failures = [failure.get("failure", "") for failure in test.get("failures", [])]
            if test.get("result") != "COMPLETED":
                complaints.append(f"{name} was not run: {test.get('result')}")
            elif not failures:
                complaints.append(f"{name} passes with the mutation")
            elif any("exception" in failure and "thrown" in failure for failure in failures):
                complaints.append(f"{name} ended in an exception, not in a failed assertion")
    return complaints if ran else ["the filter selects no test"]


def judge(binary, test_filter):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        command = [binary, f"--gtest_filter={test_filter}", f"--gtest_output=json:{path}", "--gtest_brief=1"]
        returncode = subprocess.run(command, check=False).returncode
        report = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
    return survivors(returncode, report)


def main(arguments):
    if len(arguments) == 5 and arguments[0] == "write":
        source, replace, replacement = (open(path, encoding="utf-8").read() for path in arguments[1:4])
        try:
            mutated = mutate(source, replace, replacement)
        except ValueError as error:
            print(f"{arguments[1]}: {error}", file=sys.stderr)
            return 1
        with open(arguments[4], "w", encoding="utf-8") as file:
            file.write(mutated)
        return 0
    if len(arguments) == 3 and arguments[0] == "judge":
        complaints = judge(arguments[1], arguments[2])
        print("\n".join(complaints) if complaints else "the mutation was noticed by every test meant to")
        return 1 if complaints else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
