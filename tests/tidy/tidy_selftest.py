#!/usr/bin/env python3
"""Each check must see what it is there for: small bad inputs fail, their good twins pass."""

import contextlib
import io
import json
import pathlib
import shutil
import tempfile
import unittest

import binaries
import documents
import floors
import functions
import habits
import locks
import sizes
from source_tree import Source


def rules(check, path, text, others=()):
    with contextlib.redirect_stdout(io.StringIO()):
        return [(v.line, v.rule) for v in check([Source(path, text), *others])]


class Floors(unittest.TestCase):
    BAD = [
        ("core/base/a.h", '"core/domain/draw.h"'),
        ("core/domain/a.h", '"core/store/blob_store/blob_store.h"'),
        ("core/domain/a.h", '"core/scores/entropy.h"'),
        ("core/store/state_store/a.h", '"core/store/blob_store/blob_store.h"'),
        ("core/store/draw_codec/a.h", '"core/store/state_store/state_store.h"'),
        ("core/wire/a.cc", "<grpcpp/server.h>"),
        ("server/control/a.h", '"server/predict/sums/aggregator.h"'),
        ("server/predict/a.h", '"server/control/dispatcher.h"'),
        ("server/predict/a.h", '"chainfleet/v1/predict.pb.h"'),
        ("server/predict/a.h", '"core/wire/predict_wire.h"'),
        ("server/predict/a.cc", "<torch/torch.h>"),
        ("server/rpc/a.cc", '"worker/runtime/backoff.h"'),
        ("server/rpc/a.cc", '"client/lib/client.h"'),
        ("worker/numerics/a.cc", '"core/store/state_store/state_store.h"'),
        ("worker/numerics/a.cc", '"worker/runtime/backoff.h"'),
        ("worker/numerics/a.h", "<torch/torch.h>"),
        ("worker/numerics/a.h", "<ATen/ATen.h>"),
        ("worker/runtime/a.cc", "<ATen/core/Tensor.h>"),
        ("worker/runtime/a.cc", "<grpcpp/grpcpp.h>"),
        ("worker/telemetry/a.cc", "<prometheus/counter.h>"),
        ("client/lib/a.cc", "<yaml-cpp/yaml.h>"),
        ("core/base/a.cc", "<boost/asio.hpp>"),
        ("core/base/a.cc", '"tests/support/fake_clock.h"'),
        ("core/newfolder/a.cc", "<string>"),
    ]
    GOOD = [
        ("core/store/state_store/a.cc", '"core/store/draw_codec/sha256.h"'),
        ("core/wire/a.cc", "<grpcpp/support/status.h>"),
        ("server/rpc/a.cc", '"server/control/dispatcher.h"'),
        ("server/rpc/a.cc", "<grpcpp/grpcpp.h>"),
        ("worker/numerics/models/a.h", '"worker/numerics/arena/layout.h"'),
        ("worker/numerics/a.h", "<ATen/core/Tensor.h>"),
        ("worker/numerics/a.cc", "<torch/torch.h>"),
        ("worker/numerics/a.cc", '"core/store/draw_codec/segment_codec.h"'),
        ("core/base/a.cc", "<sys/file.h>"),
        ("tests/server/predict/a.cc", '"server/control/dispatcher.h"'),
    ]

    def test_refuses_what_runs_up(self):
        for path, name in self.BAD:
            with self.subTest(path=path, name=name):
                self.assertEqual(len(rules(floors.check, path, f"// Text.\n#include {name}\n")), 1)

    def test_lets_what_runs_down_pass(self):
        for path, name in self.GOOD:
            with self.subTest(path=path, name=name):
                self.assertEqual(rules(floors.check, path, f"#include {name}\n"), [])


class Cycles(unittest.TestCase):
    OTHERS = [Source("core/b/b.h", '#include "core/c/c.h"\n'), Source("core/c/c.h", '\n#include "core/a/other.h"\n'),
              Source("core/d/d.h", '#include "core/b/b.h"\n'), Source("core/a/main.cc", '#include "core/d/d.h"\n')]

    def test_sees_a_cycle_of_three_folders(self):
        self.assertEqual(rules(floors.check_cycles, "core/a/a.h", '#include "core/b/b.h"\n', self.OTHERS),
                         [(1, "cycle"), (1, "cycle"), (2, "cycle")])

    def test_lets_folders_in_order_pass(self):
        for name in ("core/a/more.h", "core/base/check.h"):
            self.assertEqual(rules(floors.check_cycles, "core/a/a.h", f'#include "{name}"\n', self.OTHERS), [])


class Functions(unittest.TestCase):
    CODE = """#include <a>
namespace chainfleet {
namespace {
constexpr int kTable[] = {1, 2};
}  // namespace
template <typename T = int>
T First(const T& x) {
  if (x) { return "}"; }  // a brace in a string, and here: {
  return '{';
}
class Thing final : public Base {
 public:
  Thing(int a, std::vector<int> b)
      : a_(a), b_{std::move(b)}, c_{} {
    Run([&] {
      b_.clear();
    });
  }
  bool operator==(const Thing&) const { return true; }
  Thing& operator=(const Thing&) = default;

 private:
  std::function<void()> f_ = [](int) { return 1; };
  std::vector<int> c_ = {1, 2};
  struct State {
    void Touch() noexcept override {
    }
  };
};
auto Second() -> decltype(x()) { return {}; }
absl::StatusOr<std::vector<int>> Thing::Third(std::function<void(int)> f) const {
  return {1};
}
TEST(Thing, Works) {
}
}  // namespace chainfleet
"""

    def test_measures_each_function_once(self):
        found = [(f.name, f.num_lines) for f in functions.find(Source("core/a.cc", self.CODE))]
        self.assertEqual(found, [("First", 5), ("Thing", 6), ("operator==", 1), ("Touch", 2), ("Second", 1),
                                 ("Thing::Third", 3), ("TEST", 2)])

    def test_refuses_a_long_one(self):
        body = "  Step();\n" * 68
        for count, expected in ((68, []), (69, [(2, "function-size")])):
            text = "\nvoid Long() {\n" + "  Step();\n" * count + "}\n" + "void Short() {}\n" * 40
            self.assertEqual(rules(sizes.check_functions, "core/a.cc", text), expected)
        many = rules(sizes.check_functions, "core/a.cc", f"void A() {{\n{body}}}\n" * 3)
        self.assertEqual(many, [(1, "function-size")])  # the 95th percentile

    def test_says_so_when_it_cannot_measure(self):
        self.assertEqual(rules(sizes.check_functions, "core/a.cc", "void A() {\n"), [(1, "function-size")])


class Classes(unittest.TestCase):
    def test_finds_each_class_once(self):
        found = [(c.name, c.num_lines) for c in functions.find_classes(Source("core/a.cc", Functions.CODE))]
        self.assertEqual(found, [("State", 4), ("Thing", 19)])
        heads = ["struct Outer::Inner {", "class ABSL_LOCKABLE Inner final : public A::B {", "template <class T>\nstruct Inner {"]
        self.assertEqual([functions.find_classes(Source("core/a.cc", f"{head}\n}};\n"))[0].name for head in heads],
                         ["Outer::Inner", "Inner", "Inner"])
        self.assertEqual(functions.find_classes(Source("core/a.cc", "enum class Color {\n  kRed\n};\n")), [])

    def test_refuses_a_long_one_and_one_of_another_size_than_the_table_has(self):
        def long_class(name, num_lines):
            return f"class {name} {{\n" + "  int x_;\n" * (num_lines - 2) + "};\n"
        others = [Source(path, long_class(name, lines)) for (path, name), lines in sizes.LONG_CLASSES.items()]
        for size, expected in ((150, []), (151, [(1, "class-size")])):
            self.assertEqual(rules(sizes.check_classes, "core/a.cc", long_class("Thing", size), others), expected)
        self.assertEqual(rules(sizes.check_classes, "core/a.cc", "", others[1:]), [(1, "class-size")])
        (path, name), num_lines = next(iter(sizes.LONG_CLASSES.items()))
        for size in (num_lines - 1, num_lines + 1):
            self.assertEqual(rules(sizes.check_classes, path, long_class(name, size), others[1:]), [(1, "class-size")])
        self.assertEqual(len(rules(sizes.check_classes, "core/b.cc", long_class(name, num_lines), others)), 1)


    def test_counts_the_methods_of_the_dispatcher(self):
        others = [Source(path, f"class {name} {{\n" + "  int x_;\n" * (lines - 2) + "};\n")
                  for (path, name), lines in sizes.LONG_CLASSES.items()]
        for count, expected in ((21, []), (20, [(1, "class-size")]), (22, [(1, "class-size")])):
            text = ("class Dispatcher {\n public:\n  Dispatcher(int a);\n  ~Dispatcher();\n" + "  Reply<A> Ask(int a);\n" * count +
                    "\n private:\n  void Tell(int a);\n};\n")
            self.assertEqual(rules(sizes.check_classes, "server/control/dispatcher.h", text, others), expected)


class Subjects(unittest.TestCase):
    def test_wants_a_comment_at_the_head(self):
        for text in ("#pragma once\n", "// What it holds.\n", "// Of tests.\n", "import os\n", "//\n"):
            with self.subTest(text=text):
                self.assertEqual(rules(habits.check_subjects, "tests/support/a.h", text), [(1, "subject")])

    def test_wants_a_noun_or_a_verb_in_each_comment(self):
        for path, text in (("a.h", "// Of tests."), ("a.h", "int x;  // of tests"), ("a.cc", "int x;       // What it is."),
                           ("a.py", '"""Who asks."""'), ("a.py", "X = 1  # of tests"), ("a.yml", "  # Whose it is.")):
            with self.subTest(text=text):
                self.assertEqual(rules(habits.check_subjects, f"core/{path}", f"x\n{text}\n"), [(2, "subject")])
        for text in ("// Whole numbers", "// is the sum\n// of both.", "int x;  // offset", 'Say("a# of b");'):
            with self.subTest(text=text):
                self.assertEqual(rules(habits.check_subjects, "core/a.h", text + "\n"), [])

    def test_wants_a_claim_in_the_name_of_each_test(self):
        for path, text in (("a.cc", "TEST(Report, OfASweep) {"), ("a.cc", "TEST_F(Report,\n       WhatIsLost) {"),
                           ("a.cc", "TEST_P(Report, ThatIsLost) {"), ("a.cc", "TYPED_TEST(Report, Of2Rows) {"),
                           ("a.cc", "TEST(Report, WhoseItIs) {"), ("a.py", "    def test_of_numbers(self):"),
                           ("a.py", "def test_those_that_wait():")):
            with self.subTest(text=text):
                self.assertEqual(rules(habits.check_subjects, f"tests/core/{path}", f"x\n{text}\n"), [(2, "subject")])
        for path, text in (("a.cc", "TEST(Report, ShowsRowsOfNumbers) {"), ("a.cc", "TEST(Report, OftenHasRows) {"),
                           ("a.py", "def test_offsets_are_read():"), ("a.py", "def write_test_of_it():")):
            with self.subTest(text=text):
                self.assertEqual(rules(habits.check_subjects, f"tests/core/{path}", text + "\n"), [])

    def test_lets_a_subject_pass(self):
        for path, text in (("a.h", "// A clock.\n"), ("a.py", '#!/usr/bin/env python3\n"""A clock."""\n'), ("a.sh", "# A clock.\n")):
            with self.subTest(path=path):
                self.assertEqual(rules(habits.check_subjects, f"tests/support/{path}", text), [])
        self.assertEqual(rules(habits.check_subjects, "tests/support/a.cc", "int x;\n",
                               [Source("tests/support/a.h", "// A clock.\n")]), [])


class Files(unittest.TestCase):
    def test_refuses_long_files(self):
        self.assertEqual(rules(sizes.check_files, "core/a.sh", "x\n" * 600), [])
        self.assertEqual(rules(sizes.check_files, "core/a.sh", "x\n" * 601), [(1, "file-size")])

    def test_refuses_a_tree_of_longish_files(self):
        others = [Source(f"core/b{i}.cc", "x\n" * 121) for i in range(3)]
        self.assertEqual(rules(sizes.check_files, "core/a.cc", "x\n" * 10, others), [(1, "file-size")])
        others = [Source(f"core/b{i}.cc", "x\n" * (401 if i < 2 else 10)) for i in range(19)]
        self.assertEqual(rules(sizes.check_files, "core/a.cc", "x\n" * 10, others), [(1, "file-size")])


class Calls(unittest.TestCase):
    BAD = [
        ("sleep", "server/rpc/a.cc", "absl::SleepFor(d);"),
        ("sleep", "tests/core/a.cc", "usleep(3);"),
        ("sleep", "worker/main.cc", "std::this_thread::yield();"),
        ("mutex", "server/control/a.h", "absl::Mutex mutex_;"),
        ("mutex", "tests/server/a.cc", "std::lock_guard<M> lock(m);"),
        ("clock", "worker/runtime/a.cc", "absl::Now();"),
        ("clock", "core/base/log.cc", "std::chrono::system_clock::now();"),
        ("clock", "server/control/a.cc", "time(nullptr);"),
        ("thread", "worker/runtime/a.cc", "std::thread t;"),
        ("random", "worker/numerics/a.cc", "at::randn({3});"),
        ("random", "server/control/a.cc", "std::mt19937 g;"),
        ("random", "client/cli/a.cc", "rand();"),
        ("random", "worker/numerics/a.cc", "torch::manual_seed(1);"),
        ("thread", "worker/main.cc", "std::thread t;"),
        ("fresh-randomness", "server/control/a.cc", "RandomBits();"),
        ("fresh-randomness", "worker/worker.h", "std::random_device device;"),
        ("store-writes", "server/control/a.cc", "store->Apply(changes, now);"),
        ("store-writes", "server/rpc/a.cc", "store_->Apply(changes, now);"),
        ("locked-log", "server/control/dispatcher_jobs.cc", "Log(LogLevel::kInfo, text);"),
        ("unfinished", "docs/a.sh", "# TODO: later"),
    ]
    GOOD = [
        ("core/base/clock.cc", "absl::Now();"),
        ("core/base/mutex.h", "absl::Mutex mutex_;"),
        ("server/control/state_writer.cc", "store->Apply(changes, now);"),
        ("tests/core/a.cc", "store_->Apply(changes, now);"),
        ("server/control/dispatcher.cc", "Log(line.level, line.message);"),
        ("worker/worker.h", "std::thread t;"),
        ("worker/worker.cc", "RandomBits();"),
        ("worker/main.cc", "std::thread::hardware_concurrency();"),
        ("tests/core/a.cc", "std::mt19937 g(1);"),
        ("server/rpc/a.cc", "// absl::Now() is banned\nLog(\"absl::SleepFor(\");"),
        ("server/rpc/a.cc", "operand(1); clock->time(0);"),
    ]

    def test_refuses_banned_calls(self):
        for rule, path, text in self.BAD:
            with self.subTest(path=path, text=text):
                self.assertEqual(rules(habits.check_calls, path, "\n" + text + "\n"), [(2, rule)])

    def test_lets_the_rest_pass(self):
        for path, text in self.GOOD:
            with self.subTest(path=path, text=text):
                self.assertEqual(rules(habits.check_calls, path, text + "\n"), [])


class Names(unittest.TestCase):
    def test_refuses_empty_words(self):
        self.assertEqual(rules(habits.check_names, "core/base/string_utils.h", ""), [(1, "name")])
        self.assertEqual(rules(habits.check_names, "core/common/a.h", ""), [(1, "name")])
        self.assertEqual(rules(habits.check_names, "core/base/a.h", "\nclass ChainManager final : public B {};\n"),
                         [(2, "name")])
        self.assertEqual(rules(habits.check_names, "core/base/a.h", "namespace log_util {}\n"), [(1, "name")])

    def test_lets_words_of_the_field_pass(self):
        self.assertEqual(rules(habits.check_names, "server/control/lease_table.h", "class CommonsenseTable {};\n"), [])


class Headers(unittest.TestCase):
    def test_wants_the_own_header_first(self):
        header = Source("core/base/a.h", "// A.\n#pragma once\n")
        self.assertEqual(rules(habits.check_headers, "core/base/a.cc", '#include "core/base/a.h"\n', [header]), [])
        self.assertEqual(rules(habits.check_headers, "core/base/a.cc", '\n#include <map>\n#include "core/base/a.h"\n',
                               [header]), [(2, "header")])
        self.assertEqual(rules(habits.check_headers, "core/base/a.cc", "int x;\n", [header]), [(1, "header")])

    def test_wants_pragma_once(self):
        self.assertEqual(rules(habits.check_headers, "core/base/a.h", "// #pragma once\n"), [(1, "header")])


class Locks(unittest.TestCase):
    CODE = """#include "core/base/mutex.h"
class Counter {
 public:
  void Add() {
    chainfleet::MutexLock lock(&mutex_);
    ++count_;
  }
  int Read() { %s }
 private:
  chainfleet::Mutex mutex_;
  int count_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
};
"""

    def found(self, body):
        """Returns the check's violations for a build that compiles one such file, as part of a unity file."""
        root = pathlib.Path(__file__).resolve().parents[2]
        with tempfile.TemporaryDirectory(dir=root) as folder:
            source, unity = pathlib.Path(folder, "counter.cc"), pathlib.Path(folder, "Unity", "unity_0_cxx.cxx")
            unity.parent.mkdir()
            source.write_text(self.CODE % body)
            unity.write_text(f'#include "{source}"\n#include "{root}/core/base/check.cc"\n')
            command = f"ccache c++ -I{root} -Wall -std=c++20 -o a.o -c {unity}"
            pathlib.Path(folder, "compile_commands.json").write_text(json.dumps([{"file": str(unity), "command": command}]))
            path = str(source.relative_to(root))
            with contextlib.redirect_stdout(io.StringIO()):
                found = locks.check([Source(path, source.read_text())], str(root), folder,
                                    shutil.which("clang++-14") or "clang++")
            return [(v.path == path, v.line, v.rule) for v in found]

    def test_sees_a_member_that_is_read_without_its_lock(self):
        self.assertEqual(self.found("return count_;"), [(True, 8, "locks")])
        self.assertEqual(self.found("auto read = [this] { return count_; }; return read();"), [(True, 8, "locks")])

    def test_lets_a_locked_member_pass(self):
        self.assertEqual(self.found("chainfleet::MutexLock lock(&mutex_); return count_;"), [])
        self.assertEqual(self.found("mutex_.AssertHeld(); return count_;"), [])

    def test_says_so_when_clang_cannot_parse(self):
        self.assertEqual(self.found("return nullptr;"), [(True, 8, "locks")])

    def test_says_so_when_there_is_nothing_to_check(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "compile_commands.json").write_text("[]")
            self.assertEqual(len(locks.check([], folder, folder, "clang++")), 1)


class Documents(unittest.TestCase):
    HERE = Source("docs/guides/a.md", "# A\n\n## Who may, and `when`\n\n### [Linked](a.md) words\n")

    def references(self, path, text):
        return rules(documents.check_references, path, text, [self.HERE])

    def test_refuses_wide_prose_only(self):
        wide = "x" * 121
        text = f"{'x' * 120}\n{wide}\n| {wide} |\n    {wide}\n```\n{wide}\n```\n- {wide}\n"
        self.assertEqual(rules(documents.check_width, "docs/a.md", text), [(2, "prose-width"), (8, "prose-width")])
        self.assertEqual(rules(documents.check_width, "docs/a.py", text), [])

    def test_refuses_references_that_lead_nowhere(self):
        for path, text in (("docs/b.md", "[a](guides/c.md)"), ("docs/b.md", "[a](guides/a.md#who-may)"),
                           ("docs/b.md", "[a](#none)"), ("core/a.h", "// See docs/a.md."),
                           ("core/a.h", "// docs/guides/a.md#nothing"), ("core/a.h", '// docs/guides/a.md, "Nothing".'),
                           ("deploy/a.yml", "url: docs/guides/a.md#nothing"), ("core/a.h", "// Leases (protocol 4)."),
                           ("core/a.h", "// Checks (protocol 1-2) first."), ("core/a.h", "// core/gone/b.h has it."),
                           ("docs/b.md", "The file `tests/gone.py` says how.")):
            with self.subTest(path=path, text=text):
                self.assertEqual(self.references(path, "\n" + text + "\n"), [(2, "reference")])

    def test_follows_those_that_lead_somewhere(self):
        for path, text in (("docs/b.md", "[a](guides/a.md#who-may-and-when)"), ("docs/guides/b.md", "[a](a.md#linked-words)"),
                           ("docs/b.md", "# B\n[b](#b) [x](https://x.org/a.md#y)"), ("core/a.h", "// See docs/guides/a.md."),
                           ("core/a.h", '// docs/guides/a.md, "Who may, and `when`".'), ("core/a.cc", '"speaks protocol 1, not"'),
                           ("core/a.h", '// core/a.h\n#include "core/made/b.pb.h"'),
                           ("deploy/a.yml", "url: docs/guides/a.md#a")):
            with self.subTest(path=path, text=text):
                self.assertEqual(self.references(path, text + "\n"), [])


class Binaries(unittest.TestCase):
    def test_sees_torch_in_the_server(self):
        found = binaries.check_libraries("server", "\tlibtorch_cpu.so => /x/libtorch_cpu.so (0x0)\n\tlibc10.so => not found\n")
        self.assertEqual(sorted(v.message for v in found), ["is linked to libc10.so", "is linked to libtorch_cpu.so"])
        self.assertEqual(binaries.check_libraries("server", "\tlibgrpc++.so.1.51 => /x (0x0)\n"), [])

    def test_says_so_when_there_is_no_binary(self):
        self.assertEqual(len(binaries.check_server("no/such/binary")), 1)


if __name__ == "__main__":
    unittest.main()
