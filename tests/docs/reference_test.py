"""docs/reference says what the sources and the programs say."""

import glob
import os
import re
import subprocess
import unittest

import generate
import job_file
import reasons
import yaml


def keys_of(value, prefix=""):
    """The keys of a job file as the table writes them, those with values of their own choosing left out."""
    for key, inner in value.items():
        yield prefix + key
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, dict) and not (prefix + key).endswith("prior.gaussian.layers"):
                yield from keys_of(one, prefix + key + ("[]." if isinstance(inner, list) else "."))


class JobFile(unittest.TestCase):
    def test_the_page_has_the_table_of_the_schema(self):
        self.assertEqual(generate.generated(job_file.read("docs/reference/job_file.md")), job_file.table().strip("\n"),
                         "run tests/docs/generate.py")

    def test_the_table_has_every_key_of_the_example_jobs(self):
        known = set(re.findall(r"^\| `([^`]+)`", job_file.table(), re.M))
        files = glob.glob(os.path.join(job_file.ROOT, "deploy", "jobs", "*.yaml"))
        self.assertGreater(len(files), 10)
        for path in files:
            with open(path, encoding="utf-8") as file:
                used = {key for key in keys_of(yaml.safe_load(file)) if not re.search(r"\.(branch|shortcut)\[\]", key)}
            self.assertEqual(sorted(used - known), [], path)

    def test_defaults_and_bounds_are_those_of_the_structs(self):
        rows = dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|$", job_file.table(), re.M))
        for key, row in (("sampler.emcmc.eta", "number | 0.0004 | above 0 |"), ("chains", "integer | 1 | at least 1, at most 4,096 |"),
                         ("sampler.sghmc.friction", "number | 0.1 | above 0, at most 1 |"),
                         ("sampler.laplace.structure", "text | kronecker | kronecker, diagonal, full |"),
                         ("learning_rate.constant", "number | | at least 0 |"),
                         ("model.layers[].conv.out_channels", "integer | required | 1 to 65,536 |")):
            self.assertTrue((rows[key] + " |").startswith(row), f"{key}: {rows[key]}")


class Commands(unittest.TestCase):
    def test_the_page_has_the_help_of_every_command(self):
        self.assertEqual(generate.generated(job_file.read("docs/reference/cli.md")),
                         generate.cli(os.environ["CHAINFLEET_BIN"]).strip("\n"), "run tests/docs/generate.py")

    def test_each_program_says_the_version(self):
        version = re.search(r'kVersion\[\] = "(.+)"', job_file.read("core/base/version.h")).group(1)
        programs = glob.glob(os.environ["CHAINFLEET_BIN"] + "/chainfleet*")
        said = {program: subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout for program in programs}
        self.assertEqual(said, dict.fromkeys(programs, version + "\n"))


class Reasons(unittest.TestCase):
    def test_the_page_lists_every_reason_that_the_sources_give_and_no_other(self):
        listed = reasons.of_page(job_file.read("docs/reference/errors.md"))
        self.assertEqual(listed, sorted(set(listed)))
        self.assertEqual({r: path for r, path in reasons.of_sources().items() if r not in listed}, {})
        self.assertEqual(sorted(set(listed) - set(reasons.of_sources())), [])
        self.assertGreater(len(listed), 40)

    def test_the_page_lists_every_bound_that_errors_name_and_no_other(self):
        listed = reasons.bounds_of_page(job_file.read("docs/reference/errors.md"))
        self.assertEqual(listed, sorted(reasons.bounds_of_sources()))
        self.assertGreater(len(listed), 20)


if __name__ == "__main__":
    unittest.main()
