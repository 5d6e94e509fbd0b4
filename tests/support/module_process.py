"""The process in which a worker runs a TorchScript module, started without a worker."""
import mmap
import os
import socket
import struct
import subprocess

BIN = os.environ["CHAINFLEET_BIN"]
MEMORY = 4 << 30  # ModuleMemory::kBytes
LOAD, DONE, REFUSED, FAILED = 0, 0, 1, 2  # ModuleCall, ModuleAnswer


class ModuleProcess:
    def __init__(self):
        self.socket, theirs = socket.socketpair()
        fd = os.memfd_create("module")
        os.ftruncate(fd, MEMORY)
        self.memory = mmap.mmap(fd, MEMORY)
        self.process = subprocess.Popen([os.path.join(BIN, "chainfleet-worker"), "--serve-module"], stdin=theirs, stdout=fd, stderr=subprocess.DEVNULL,
                                        env={name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"})
        theirs.close()
        os.close(fd)
        self.socket.settimeout(120)

    def load(self, path):
        """Gives the file to the process. Returns DONE and "", or another kind of answer and its reason."""
        with open(path, "rb") as f:
            content = f.read()
        self.memory[:16 + len(content)] = struct.pack("<qq", LOAD, len(content)) + content
        self.socket.send(b"\0")
        if not self.socket.recv(1):
            raise AssertionError(f"the process ends with {self.process.wait()}")
        kind, size = struct.unpack("<qq", self.memory[:16])
        return kind, "" if kind == DONE else self.memory[16:16 + size].decode()

    def close(self):
        """Returns the exit status."""
        self.socket.close()
        self.memory.close()
        return self.process.wait(60)


def loaded(path):
    process = ModuleProcess()
    try:
        return process.load(path)
    finally:
        process.close()
