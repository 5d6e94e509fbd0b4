"""The coroutines of chainfleet.aio: the same methods, concurrent calls, and a cancelled task that cancels its call."""
import asyncio
import contextlib
import inspect
import io
import os
import tempfile
import threading
import unittest
import unittest.mock

import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import grpc
from chainfleet import aio_calls
from chainfleet.v1 import jobs_pb2
from connection_test import Served, refuse, reason
from show_test import Terminal

PAIRS = ((cf.Fleet, cf.aio.Fleet), (cf.Job, cf.aio.Job), (cf.Draws, cf.aio.Draws))


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


class SameMethods(unittest.TestCase):
    def test_each_public_method_is_there_with_its_arguments(self):
        for sync, made in PAIRS:
            self.assertEqual(public(sync) - public(made), set(), sync)
            for name in public(sync):
                method = getattr(sync, name)
                if callable(method):
                    self.assertEqual(list(inspect.signature(getattr(made, name)).parameters), list(inspect.signature(method).parameters), name)

    def test_calls_of_the_server_are_awaited(self):
        for name in ("sample", "jobs", "put_dataset"):
            self.assertTrue(inspect.iscoroutinefunction(getattr(cf.aio.Fleet, name)), name)
        for name in ("predict", "wait", "draws", "evaluate"):
            self.assertTrue(inspect.iscoroutinefunction(getattr(cf.aio.Job, name)), name)


class Calls(Served, unittest.IsolatedAsyncioTestCase):
    def fleet(self, server):
        return cf.aio.Fleet(cf.Fleet(self.connect(server)))

    async def test_calls_wait_at_the_same_time(self):
        both = threading.Barrier(2)

        def get(request, context):
            both.wait(20)  # neither call ends before the other one has begun
            return jobs_pb2.Job(id=request.name)

        fleet = self.fleet(self.serve(GetJob=get))
        jobs = await asyncio.gather(fleet.job("a"), fleet.job("b"))
        self.assertEqual([(type(job), job.id) for job in jobs], [(cf.aio.Job, "a"), (cf.aio.Job, "b")])

    async def test_a_cancelled_task_cancels_its_call(self):
        begun, ended = threading.Event(), threading.Event()

        def get(request, context):
            context.add_callback(ended.set)
            begun.set()
            ended.wait(20)
            return jobs_pb2.Job()

        task = asyncio.ensure_future(self.fleet(self.serve(GetJob=get)).job("a"))
        self.assertTrue(await asyncio.to_thread(begun.wait, 20))
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertTrue(await asyncio.to_thread(ended.wait, 20), "the server learns that nobody waits")

    async def test_a_cancelled_task_repeats_no_call(self):
        begun = threading.Event()

        def get(request, context):
            begun.set()
            refuse(context, grpc.StatusCode.UNAVAILABLE, "no", reason("NOT_LEADER"))

        server = self.serve(GetJob=get)
        task = asyncio.ensure_future(self.fleet(server).job("a"))
        self.assertTrue(await asyncio.to_thread(begun.wait, 20))
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertLessEqual(len(server.metadata), 2)

    async def test_a_cancelled_task_ends_its_program(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        program, pid = os.path.join(folder, "chainfleet"), os.path.join(folder, "pid")
        with open(program, "w") as file:
            file.write(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 100\n")
        os.chmod(program, 0o700)
        with unittest.mock.patch.dict(os.environ, {"CHAINFLEET_BIN": folder}):
            task = asyncio.ensure_future(self.fleet(self.serve()).doctor())
            while not os.path.exists(pid) or not os.path.getsize(pid):
                self.assertFalse(task.done())
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        await asyncio.to_thread(aio_calls._threads.shutdown)  # the thread has waited for the program
        aio_calls._threads = aio_calls.ThreadPoolExecutor(4)
        with open(pid) as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    async def test_a_watch_yields_each_state_and_is_closed_early(self):
        closed = threading.Event()

        def watch(request, context):
            context.add_callback(closed.set)
            yield jobs_pb2.Job(id="j", state=jobs_pb2.Job.RUNNING)
            yield jobs_pb2.Job(id="j", state=jobs_pb2.Job.PAUSED)
            closed.wait(20)

        job = cf.aio.Job(cf.Job(cf.Fleet(self.connect(self.serve(WatchJob=watch))), "j"))
        states = []
        async for state in job.watch():
            states.append(state.state)
            if state.state == jobs_pb2.Job.PAUSED:
                break
        self.assertEqual(states, [jobs_pb2.Job.RUNNING, jobs_pb2.Job.PAUSED])
        self.assertTrue(await asyncio.to_thread(closed.wait, 20))

    async def test_control_c_of_a_waiting_task_says_how_to_find_the_job(self):
        begun, ended = threading.Event(), threading.Event()

        def watch(request, context):
            context.add_callback(ended.set)
            yield jobs_pb2.Job(id="j", state=jobs_pb2.Job.RUNNING)
            begun.set()
            ended.wait(20)

        job = cf.aio.Job(cf.Job(cf.Fleet(self.connect(self.serve(WatchJob=watch))), "j"))
        for terminal in (Terminal(), io.StringIO()):
            begun.clear()
            ended.clear()
            with contextlib.redirect_stderr(terminal):
                task = asyncio.ensure_future(job.wait())
                self.assertTrue(await asyncio.to_thread(begun.wait, 20))
                task.cancel()  # as asyncio.run does
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertTrue(await asyncio.to_thread(ended.wait, 20))
                aio_calls._threads.shutdown(wait=True)  # all work of the task has ended
            aio_calls._threads = aio_calls.ThreadPoolExecutor(4)
            self.assertEqual("fleet.job('j')" in terminal.getvalue(), terminal.isatty())

    async def test_a_fleet_of_this_machine_is_stopped(self):
        with unittest.mock.patch("chainfleet.local_fleet.run_program") as run:
            await cf.aio.down("folder")
        run.assert_called_once_with(["down", "--data-dir=folder"])

    async def test_errors_are_the_same(self):
        server = self.serve(GetJob=lambda request, context: refuse(context, grpc.StatusCode.NOT_FOUND, "no", reason("JOB_NOT_FOUND")))
        with self.assertRaises(cf.errors.NotFound):
            await self.fleet(server).job("a")

    async def test_a_job_among_the_arguments_is_taken(self):
        server = self.serve(SetAlias=lambda request, context: jobs_pb2.Alias(name=request.name, job_id=request.job))
        job = cf.aio.Job(cf.Job(cf.Fleet(self.connect(server)), "j-1"))
        self.assertEqual((await self.fleet(server).set_alias("best", job)).job_id, "j-1")


if __name__ == "__main__":
    unittest.main()
