"""Calls and names that have no place in the tree, and each file's own header first."""

import re

from source_tree import Violation

# (rule, pattern of the call, paths held to it, paths free of it, what to do instead).
CALLS = [
    ("sleep", r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep)\b|(?<![\w.:>])sleep\s*\(|\bstd::this_thread\b",
     r"", r"core/base/|client/cli/", "wait on a CondVar or use Executor::ScheduleAfter"),
    ("mutex", r"\babsl::(Mutex|MutexLock|ReaderMutexLock|WriterMutexLock|CondVar)\b|"
     r"\bstd::(mutex|recursive_mutex|shared_mutex|timed_mutex|lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable)\b",
     r"", r"core/base/(mutex\.h|thread_pool\.cc)", "use core/base/mutex.h"),
    ("clock", r"\bstd::chrono::(system|steady|high_resolution)_clock\b|\babsl::(Now|GetCurrentTimeNanos)\b|"
     r"\b(clock_gettime|gettimeofday)\b|(?<![\w.:>])time\s*\(\s*(NULL|nullptr|0)\s*\)",
     r"", r"core/base/(clock|thread_pool)\.cc|tests/bench/|tests/fault/shim\.cc", "take a Clock"),
    ("thread", r"\bstd::(jthread|thread)\b(?!::)|\bstd::async\b|\bpthread_create\b",
     r"(core|server|worker|client)/", r"core/base/thread_pool\.(h|cc)|worker/worker\.(h|cc)|client/cli/", "take an Executor"),
    ("random", r"(?<![\w.:>])s?rand\s*\(|\bstd::(mt19937(_64)?|default_random_engine|minstd_rand0?)\b|"
     r"\b(torch|at)::(rand|randn|randint|randperm|normal|bernoulli|dropout)(_like)?\s*\(|\bmanual_seed\b",
     r"(core|server|worker|client)/", r"$^", "use core/base/rng_key.h"),
    ("store-writes", r"\bstore_?->Apply\s*\(", r"server/", r"server/control/state_writer\.cc", "use the StateWriter, which reports changes and the loss of the lead"),
    ("locked-log", r"(?<![\w.:>])LOG\s*\(|(?<![\w.:>])Log\s*\(", r"server/control/dispatcher",
     r"server/control/dispatcher\.cc", "push a LogLine: Entered logs it after the lock"),
    ("fresh-randomness", r"\bstd::random_device\b|\bRandomBits\s*\(",
     r"(core|server|worker|client)/", r"core/base/random_bits\.(h|cc)|server/server\.cc|worker/worker\.cc|client/cli/",
     "take an RngKey"),
]
_UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")

_NAME_PARTS = {"util", "utils", "utility", "utilities", "helper", "helpers", "common", "misc", "manager", "handler",
               "processor", "stuff"}
_TYPE_NAME = re.compile(r"\b(?:class|struct|namespace)\s+((?:ABSL_\w+\s+)?\w+)\s*(?:final\s*)?[:{]")
_CAMEL = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def check_calls(sources):
    violations = []
    for source in sources:
        for rule, pattern, scope, free, instead in CALLS if source.is_cpp() else []:
            if not re.match(scope, source.path) or re.match(free, source.path):
                continue
            for match in re.finditer(pattern, source.code):
                violations.append(Violation(source.path, source.line(match.start()), rule,
                                            f"{match.group().strip()} is banned here: {instead}"))
        for match in _UNFINISHED.finditer(source.text) if not source.path.startswith("tests/tidy/") else []:
            violations.append(Violation(source.path, source.line(match.start()), "unfinished",
                                        f"{match.group()}: do it or leave it out"))
    return violations


def check_names(sources):
    violations = []
    for source in sources:
        for part in re.split(r"[/_.]", source.path):
            if part.lower() in _NAME_PARTS:
                violations.append(Violation(source.path, 1, "name", f"'{part}' says nothing about what is inside"))
        for match in _TYPE_NAME.finditer(source.code) if source.is_cpp() else []:
            words = {w.lower() for piece in match.group(1).split("_") for w in _CAMEL.findall(piece)}
            for word in sorted(words & _NAME_PARTS):
                violations.append(Violation(source.path, source.line(match.start()), "name",
                                            f"'{match.group(1)}': '{word}' says nothing about what it does"))
    return violations


def check_headers(sources):
    violations, paths = [], {s.path for s in sources}
    for source in sources:
        # Highway reads an -inl.h once for each target: it has a guard of its own.
        per_target = source.path.endswith("-inl.h") and "HWY_TARGET_TOGGLE" in source.text
        if source.path.endswith(".h") and not per_target and "\n#pragma once\n" not in "\n" + source.text:
            violations.append(Violation(source.path, 1, "header", "has no #pragma once"))
        own = re.sub(r"\.(cc|cu)$", ".h", source.path)
        if own != source.path and own in paths:
            first = (source.includes() or [(1, "nothing")])[0]
            if first[1] != own:
                violations.append(Violation(source.path, first[0], "header", f"includes {first[1]} before its own {own}"))
    return violations


_SUBJECT = re.compile(r'(#![^\n]*\n)?(// |# |""")[A-Z]')
# A comment or docstring that begins without its noun; after code also in lower case, unless a string holds it.
_FRAGMENT = re.compile(r'^[ \t]*(?://|#|""") ?(?:Of|What|Who|Whose)\b|^[^\n]*\S[ \t]+(?://|#) (?:[Oo]f|[Ww]hat|[Ww]hose?)\b', re.M)
# A test whose name is no claim with a subject and a verb, because it begins with a preposition or a pronoun.
_TEST_FRAGMENT = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*((?:Of|What|That|Those|Whose?)(?=[A-Z\d])\w*)|"
                            r"\bdef (test_(?:of|what|that|those|whose?)_\w*)")


def check_subjects(sources):
    """Comments and names of tests have a subject. Each file of the tests' support begins with one: a .cc in its header."""
    paths = {s.path for s in sources}
    return [Violation(s.path, s.line(m.start()), "subject", "begin the comment with a verb or a noun, not with Of, What or Who")
            for s in sources if not s.path.endswith(".md") and s.path != "tests/tidy/tidy_selftest.py"
            for m in _FRAGMENT.finditer(s.text)] + [
        Violation(s.path, s.line(m.start()), "subject",
                  f"{m.group(1) or m.group(2)}: name the test by a claim, such as ShowsPredictedRowsForNumbers")
        for s in sources if not s.path.endswith(".md") and s.path != "tests/tidy/tidy_selftest.py"
        for m in _TEST_FRAGMENT.finditer(s.text)] + [
        Violation(s.path, 1, "subject", "begin the file with a comment: a sentence or a noun phrase that says what it is")
        for s in sources if s.path.startswith("tests/support/") and s.path.endswith((".h", ".cc", ".cu", ".py", ".sh"))
        and not (s.path.endswith(".cc") and s.path[:-3] + ".h" in paths) and not _SUBJECT.match(s.text)]
