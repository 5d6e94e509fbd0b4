#!/usr/bin/env python3
"""Tests that mutate.py refuses text that does not occur once, and mutants that only crash, skip or select no test."""
import os
import stat
import tempfile
import unittest

import mutate


def report(*tests):
    cases = [{"name": str(i), "result": result, "failures": [{"failure": text} for text in failures]}
             for i, (result, failures) in enumerate(tests)]
    return {"testsuites": [{"name": "Laws", "testsuite": cases}]} if cases else {"testsuites": []}


FAILED = ("COMPLETED", ["law.cc:12\nExpected: is empty"])
PASSED = ("COMPLETED", [])


class Mutate(unittest.TestCase):
    def test_replaces_the_one_occurrence(self):
        self.assertEqual(mutate.mutate("a = 2;\nb = 3;\n", "2;\nb", "4;\nb"), "a = 4;\nb = 3;\n")

    def test_refuses_text_that_is_absent_twice_there_empty_or_unchanged(self):
        for source, replace, replacement in (("a", "b", "c"), ("aa", "a", "c"), ("a", "", "c"), ("a", "a", "a")):
            with self.assertRaises(ValueError):
                mutate.mutate(source, replace, replacement)


class Survivors(unittest.TestCase):
    def test_a_failed_assertion_in_every_test_kills(self):
        self.assertEqual(mutate.survivors(1, report(FAILED, FAILED)), [])

    def test_one_test_that_passes_is_a_survivor(self):
        self.assertEqual(mutate.survivors(1, report(FAILED, PASSED)), ["Laws.1 passes with the mutation"])

    def test_no_test_a_crash_a_skip_and_an_exception_are_survivors(self):
        self.assertTrue(mutate.survivors(1, report()))
        self.assertTrue(mutate.survivors(0, report(PASSED)))
        self.assertTrue(mutate.survivors(-11, None))
        self.assertTrue(mutate.survivors(134, report(FAILED)))
        self.assertTrue(mutate.survivors(1, report(FAILED, ("SKIPPED", []))))
        self.assertTrue(mutate.survivors(
            1, report(("COMPLETED", ["unknown file\nC++ exception with description \"x\" thrown in the test body."]))))


class Judge(unittest.TestCase):
    def test_a_binary_that_dies_before_its_report_is_a_survivor(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, "dies")
            with open(binary, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 1\n")
            os.chmod(binary, os.stat(binary).st_mode | stat.S_IXUSR)
            self.assertTrue(mutate.judge(binary, "*"))


if __name__ == "__main__":
    unittest.main()
