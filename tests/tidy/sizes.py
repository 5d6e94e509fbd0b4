"""Sizes of files and functions, and how much of the public headers is comment."""

import re
import statistics

import functions
from source_tree import Violation

FILE_MEDIAN, FILE_P95, FILE_STOP = 120, 400, 600
FUNCTION_P95, FUNCTION_STOP = 40, 70
CLASS_STOP = 150
# Longer ones by their path, which may not grow. Lower the number when one shrinks; take the line out at CLASS_STOP.
LONG_CLASSES = {
    ("core/store/state_store/apply_change.cc", "Applier"): 288,
    ("server/control/restored_store.cc", "StockTaking"): 165,
    ("server/predict/evaluation/evaluation.cc", "EvaluateCall"): 224,
    ("server/predict/evaluation/evaluation_operations.cc", "EvaluationOperations::State"): 169,
    ("server/predict/serving/batcher.cc", "Batcher::State"): 245,
    ("server/predict/serving/predict_router.cc", "PredictCall"): 212,
    ("server/predict/serving/shard_queue.cc", "ShardQueue::State"): 304,
    ("server/rpc/front_door.cc", "FrontDoor::Connections"): 232,
    ("tests/server/control/garbage_orders_test.cc", "World"): 155,
    ("tests/server/predict/fake_serving.h", "FakeShardPort"): 188,
    ("tests/support/fake_coordinator.h", "FakeCoordinator"): 197,
    ("tests/support/rows_in_memory.cc", "MemoryRows"): 249,
    ("worker/numerics/batch/chain_batch.cc", "KernelBatch"): 356,
    ("worker/numerics/models/eager_potential.cc", "EagerPotential"): 231,
    ("worker/numerics/models/fused_potential.cc", "FusedPotential"): 188,
}


# Public methods of the dispatcher, without its constructor and destructor: lower the number when there are fewer.
DISPATCHER_METHODS = 21


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def _over(path, rule, what, value, limit):
    return [Violation(path, 1, rule, f"{what} is {value:g} lines, the limit is {limit}")] if value > limit else []


def check_files(sources):
    violations = [v for s in sources if not s.path.endswith(".md") for v in
                  _over(s.path, "file-size", "this file", s.num_lines, FILE_STOP)]
    lines = [s.num_lines for s in sources if s.is_cpp()]
    if lines:
        violations += _over("(C++ files)", "file-size", "the median", statistics.median(lines), FILE_MEDIAN)
        violations += _over("(C++ files)", "file-size", "the 95th percentile", percentile(lines, 0.95), FILE_P95)
        print(f"{len(lines)} C++ files: median {statistics.median(lines):g} lines, "
              f"95th percentile {percentile(lines, 0.95)}, longest {max(lines)}")
    return violations


def check_functions(sources):
    violations, lines = [], []
    for source in sources:
        if not source.is_cpp():
            continue
        found = functions.find(source)
        if found is None:
            violations.append(Violation(source.path, 1, "function-size", "its braces do not balance, nothing is measured"))
            continue
        for f in found:
            lines.append(f.num_lines)
            if f.num_lines > FUNCTION_STOP:
                violations.append(Violation(source.path, f.first_line, "function-size",
                                            f"{f.name} has {f.num_lines} lines, the limit is {FUNCTION_STOP}"))
    if lines:
        violations += _over("(functions)", "function-size", "the 95th percentile", percentile(lines, 0.95), FUNCTION_P95)
        print(f"{len(lines)} functions: median {statistics.median(lines):g} lines, "
              f"95th percentile {percentile(lines, 0.95)}, longest {max(lines)}")
    return violations


def check_classes(sources):
    violations, known = [], dict(LONG_CLASSES)
    for source in sources:
        for c in functions.find_classes(source) or [] if source.is_cpp() else []:
            limit = known.pop((source.path, c.name), CLASS_STOP)
            if c.num_lines != limit if limit > CLASS_STOP else c.num_lines > limit:
                violations.append(Violation(source.path, c.first_line, "class-size",
                                            f"{c.name} is {c.num_lines} lines, the table or the limit says {limit}"))
        if source.path == "server/control/dispatcher.h":
            public = source.code.partition("class Dispatcher {")[2].partition("\n private:")[0]
            methods = len(re.findall(r"^  (?! )[^(;~\n]* [*&]?\w+\(", public, re.M))
            if methods != DISPATCHER_METHODS:
                violations.append(Violation(source.path, 1, "class-size",
                                            f"Dispatcher has {methods} public methods, the table says {DISPATCHER_METHODS}"))
    for path, name in sorted(known):
        violations.append(Violation("tests/tidy/sizes.py", 1, "class-size", f"{path} has no {name}: take it out of the table"))
    return violations


def report_comments(sources):
    """Share of comment in the non-blank lines of product headers: for people, 30 to 45 % is the aim."""
    lines = [l.strip() for s in sources if s.is_product() and s.path.endswith(".h") for l in s.text.splitlines()]
    lines = [l for l in lines if l]
    comments = sum(l.startswith("//") for l in lines) + sum("  //" in l and not l.startswith("//") for l in lines)
    print(f"{100 * comments / max(len(lines), 1):.0f} % of the lines of product headers hold a comment")
    return []
