"""The generated files of the Python package are those of the .proto files, and every call of the service has a method."""
import ast
import dataclasses
import inspect
import os
import re
import unittest

import python_package  # first: it says where the next ones are
import generate
from chainfleet import errors, layers, likelihoods, potentials, prediction, priors, samplers, schedules, specs
from chainfleet.v1 import job_spec_pb2, jobs_pb2, layers_pb2, predict_pb2


def sources():
    folder = os.path.join(python_package.PACKAGE, "chainfleet")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield name, file.read()


class Generated(unittest.TestCase):
    def test_no_file_lags_behind_the_schema(self):
        for name, text in generate.files().items():
            with open(os.path.join(generate.PACKAGE, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text, f"{name}: run tests/client/python/generate.py")

    def test_each_key_of_a_job_file_is_a_field(self):
        fields = {field.name for field in dataclasses.fields(specs.JobSpec)}
        self.assertEqual(fields, set(job_spec_pb2.JobSpec.DESCRIPTOR.fields_by_name))

    def test_each_score_is_a_property(self):
        for name in predict_pb2.PredictiveScores.DESCRIPTOR.fields_by_name:
            self.assertIsInstance(getattr(prediction.Prediction, name, None), property, name)


# Specs without a formula, and so without a source.
NO_FORMULA = {
    "JobSpec": "its parts have formulas of their own", "Model": "chooses a network; layers and potentials have formulas",
    "DatasetRef": "a name", "Sweep": "values of keys of the job", "BurnIn": "a number of steps", "Collect": "steps that are kept",
    "Retention": "draws that are kept", "Snapshots": "times of versions", "Scheduling": "a tier and a number of chains"}


def spec_docs(*modules):
    """(name, class, its docstring) of the specs in `modules`."""
    for module in modules:
        for name, kind in inspect.getmembers(module, dataclasses.is_dataclass):
            if kind.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", kind, inspect.getdoc(kind)


class Docstrings(unittest.TestCase):
    def test_each_spec_has_a_formula_and_a_source(self):
        without = set()
        for name, kind, doc in spec_docs(specs, samplers, schedules, priors, likelihoods, potentials, layers):
            if kind.__module__ == specs.__name__ and kind.__name__ in NO_FORMULA:
                self.assertNotRegex(doc, r"(?m)^(?:Formula|Source): ", f"{name}: no exception any more")
                without.add(kind.__name__)
                continue
            self.assertRegex(doc, r"(?m)^Formula: .*[(=~<>+]", name)
            self.assertRegex(doc, r'(?m)^Source: (?:definition\.$|[A-Z](?:.|\n )*(?:\b(?:18|19|20)\d\d\b|"\w))',
                             f"{name}: authors, and a year or a title")
        self.assertEqual(without, set(NO_FORMULA))

    def test_each_alternative_of_a_choice_has_a_class(self):
        job = job_spec_pb2.JobSpec
        for module, message in ((samplers, job.Sampler), (schedules, job.Schedule), (priors, job.Prior), (likelihoods, job.Likelihood),
                                (potentials, job.Potential), (layers, layers_pb2.Layer)):
            kinds = set(message.DESCRIPTOR.fields_by_name) - {"constant"}  # a plain number
            self.assertEqual({kind.choice for _, kind, _ in spec_docs(module)}, kinds, module.__name__)

    def test_each_field_says_its_default_or_that_it_is_required(self):
        for name, kind, doc in spec_docs(specs, samplers, schedules, priors, likelihoods, potentials, layers):
            for field in dataclasses.fields(kind):
                said = re.search(rf"^{field.name}: (?:.|\n )*", doc, re.M)
                self.assertIsNotNone(said, f"{name}.{field.name}")
                self.assertRegex(said.group(), "default|required", f"{name}.{field.name}")


class Errors(unittest.TestCase):
    def test_each_error_has_a_reason_and_a_remedy(self):
        kinds = {kind.__name__: kind for kind in (errors.ChainfleetError, *errors.ChainfleetError.__subclasses__())}
        checked = 0
        for file, text in sources():
            for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
                of_reason = isinstance(call.func, ast.Call) and getattr(call.func.func, "id", "") == "class_of"
                kind = kinds.get(getattr(call.func, "id", ""))
                if kind or of_reason:
                    given = {keyword.arg for keyword in call.keywords}
                    self.assertIn("reason", given, f"{file}:{call.lineno}")
                    self.assertTrue(of_reason or kind.hint or "hint" in given, f"{file}:{call.lineno}")
                    checked += 1
        self.assertGreater(checked, 25)


class Calls(unittest.TestCase):
    def test_each_public_call_has_a_method_with_its_types(self):
        services = [*jobs_pb2.DESCRIPTOR.services_by_name.values(), *predict_pb2.DESCRIPTOR.services_by_name.values()]
        methods = {f"{service.name}/{method.name}": method for service in services for method in service.methods}
        del methods["PredictService/Evaluate"]  # as StartEvaluation, but its result is lost with the connection
        calls = [node for _, text in sources() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args
                 and isinstance(node.args[0], ast.Constant) and node.args[0].value in methods]
        self.assertEqual({call.args[0].value for call in calls}, set(methods))
        for call in calls:
            method, (_, request, reply, *_) = methods[call.args[0].value], call.args
            if isinstance(request, ast.Call):
                made = request.args[0] if getattr(request.func, "id", "") == "build" else request.func
                self.assertEqual(made.attr, method.input_type.name)
            if isinstance(reply, ast.Attribute):
                self.assertEqual(reply.attr, method.output_type.name)


if __name__ == "__main__":
    unittest.main()
