"""Contexts as the command line keeps them: what is read, what is refused, and which of several places decides."""
import os
import shutil
import tempfile
import time
import unittest
import unittest.mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
from chainfleet import connection, contexts

# tests/e2e/python_contexts_test.py holds the command line to the same.
READ = {
    "\n": {},  # left when the last one was deleted
    "contexts:\n  a:\n    address: h:1\n": {"a": ("h:1", "", "")},
    "# all\ncurrent: 'it''s'  # mine\ncontexts:\n\n    it's:   # quoted above\n     address: h:1,g:2\n     token_command: pass \"x\" a:b#c | head  # last\n":
        {"it's": ("h:1,g:2", "", 'pass "x" a:b#c | head')},
    'contexts:\n  "a \\"b\\"": {address: "[::1]:7", token_file: ~/x y}\n  c: { address: h:1 }\ncurrent: c\n':
        {'a "b"': ("[::1]:7", "~/x y", ""), "c": ("h:1", "", "")},
}
REFUSED = ("contexts: {a: {address: h:1}}\n", "- current\n", "--- \ncurrent: a\n", "current: &x a\n", "current: |\n  a\n", "current: a\n  b\n",
           "current: ~\n", "contexts:\n  a: {address: h:1,g:2}\n", "contexts:\n  a:\n    address: h:1\n   token_file: x\n", "contexts:\n\ta:\n",
           "contexts:\n  a: {address: h:1}\n  a: {address: h:2}\n", "contexts:\n  a: {address: h:1, address: h:2}\n", "current: a\ncurrent: b\n",
           'current: "\\x41"\n', "contexts:\n  a: {address: h:1}\n    token_file: x\n", "current: a: b\n", "contexts:\n  a: {address: {b: c}}\n",
           "  a: {address: h:1}\n", "colour: red\n", "contexts:\n  a: x\n", "current: 'a\n", "current: a\r\n", "contexts:\n  a: {address: null}\n")


class Contexts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="chainfleet-contexts-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "config.yaml")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CHAINFLEET_", "XDG_"))}
        patch = unittest.mock.patch.dict(os.environ, {**environment, "CHAINFLEET_CONTEXTS": self.file}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, text):
        with open(self.file, "w", encoding="utf-8", newline="") as file:
            file.write(text)

    def test_files_that_people_write_are_read(self):
        for text, expected in READ.items():
            with self.subTest(text=text):
                self.write(text)
                found = contexts.read_contexts(self.file)
                self.assertEqual({name: (one.address, one.token_file, one.token_command) for name, one in found.by_name.items()}, expected)
                self.assertIn(found.current, ("", *expected))

    def test_everything_else_is_refused_with_the_file(self):
        for text in REFUSED:
            with self.subTest(text=text):
                self.write(text)
                with self.assertRaisesRegex(cf.errors.InvalidArgument, "config.yaml") as caught:
                    contexts.read_contexts(self.file)
                self.assertIn("context set", caught.exception.hint)

    def test_wrong_entries_are_named_as_the_command_line_names_them(self):
        for entry, words in (("{adress: h:1}", "context lab has the unknown key adress"), ("{token_file: x}", "context lab has no address"),
                             ("{address: h:1, token_file: x, token_command: y}", "context lab has two tokens")):
            self.write(f"contexts:\n  lab: {entry}\n")
            with self.assertRaisesRegex(cf.errors.InvalidArgument, words):
                cf.connect(context="lab")

    def test_a_large_or_hostile_file_is_refused_soon(self):
        begin = time.process_time()
        for line in ("current: " + "a" * 70_000, "current: '" + "'' " * 20_000, "current: " + "a:#" * 20_000 + ": x", "contexts:\n  a: {" + "b: c, " * 10_000):
            self.write(line)
            with self.assertRaises(cf.errors.InvalidArgument):
                contexts.read_contexts(self.file)
        self.assertLess(time.process_time() - begin, 5)

    def test_the_places_of_the_command_line_decide_in_its_order(self):
        self.write("current: lab\ncontexts:\n  lab: {address: 'l:1'}\n  prod: {address: 'p:2,q:3'}\n")
        self.assertEqual(contexts.find_server()[:2], (["l:1"], ""))
        os.environ["CHAINFLEET_ADDRESS"] = "e:5"
        self.assertEqual(contexts.find_server()[:2], (["e:5"], ""))
        os.environ["CHAINFLEET_CONTEXT"] = "prod"
        self.assertEqual(contexts.find_server()[:2], (["p:2", "q:3"], ""))
        self.assertEqual(contexts.find_server(context="lab")[:2], (["l:1"], ""))
        self.assertEqual(contexts.find_server("z:9")[:2], (["z:9"], ""))
        with self.assertRaisesRegex(cf.errors.InvalidArgument, "one of them"):
            cf.connect("z:9", context="lab")

    def test_without_a_file_nothing_changes_and_a_name_is_refused_with_a_remedy(self):
        self.assertEqual(contexts.find_server()[:2], (["127.0.0.1:7400"], ""))
        with self.assertRaisesRegex(cf.errors.NotFound, "no context lab in .*; known: none") as caught:
            cf.connect(context="lab")
        self.assertEqual(caught.exception.reason, "NO_CONTEXT")
        self.assertIn("chainfleet context set lab", caught.exception.hint)
        self.write("contexts:\n  a: {address: h:1}\n  b: {address: h:2}\n")
        with self.assertRaisesRegex(cf.errors.NotFound, "known: a, b"):
            cf.connect(context="lab")

    def test_tokens_come_from_a_file_or_a_command_and_the_environment_goes_before(self):
        with open(os.path.join(self.folder, "token"), "w", encoding="utf-8") as file:
            file.write("\n secret alice\n")
        os.environ["HOME"] = self.folder
        self.write("contexts:\n  file: {address: h:1, token_file: ~/token}\n  command: {address: h:1, token_command: echo made bob}\n"
                   "  broken: {address: h:1, token_command: exit 3}\n  gone: {address: h:1, token_file: /nowhere}\n"
                   "  mute: {address: h:1, token_command: echo}\n")
        self.assertEqual([contexts.find_server(context=name)[1] for name in ("file", "command")], ["secret", "made"])
        for name, words in (("broken", "token_command failed: exit 3"), ("gone", "token_file"),
                            ("mute", "token_command printed nothing: echo")):
            with self.assertRaisesRegex(cf.ChainfleetError, words):
                contexts.find_server(context=name)
        self.assertEqual(contexts.find_server(token="", context="command")[1], "")
        os.environ["CHAINFLEET_TOKEN"] = "mine"
        self.assertEqual(contexts.find_server(context="broken")[1], "mine", "its command is not run")

    def test_a_command_runs_once_and_again_after_its_token_was_forgotten(self):
        runs = os.path.join(self.folder, "runs")
        os.environ["CHAINFLEET_TOKEN_COMMAND"] = f"echo x >> {runs}; echo token-$(wc -l < {runs}) mine"
        self.assertEqual([contexts.find_server("h:1")[1] for _ in range(2)], ["token-1", "token-1"])
        contexts.forget_tokens()
        self.assertEqual(contexts.find_server("h:1")[1], "token-2")
        self.assertEqual(contexts.find_server("h:1", token="")[1], "")
        self.write("current: lab\ncontexts:\n  lab: {address: h:1, token_command: echo other}\n")
        self.assertEqual(contexts.find_server()[1], "token-2", "the environment goes before the context")
        os.environ["CHAINFLEET_TOKEN_COMMAND"] = "exit 3"
        with self.assertRaisesRegex(cf.errors.FailedPrecondition, "CHAINFLEET_TOKEN_COMMAND failed: exit 3"):
            contexts.find_server("h:1")

    def test_programs_reach_the_server_of_the_connection_and_not_that_of_a_context(self):
        self.assertEqual(connection.Connection(["h:1"], "t", 1).environment()["CHAINFLEET_CONTEXT"], "")

    def test_programs_of_a_connection_without_a_token_find_no_other(self):
        found = connection.Connection(["h:1"], "", 1).environment()
        for name in ("CHAINFLEET_TOKEN", "CHAINFLEET_TOKEN_FILE", "CHAINFLEET_TOKEN_COMMAND"):
            self.assertEqual(found[name], "")


if __name__ == "__main__":
    unittest.main()
