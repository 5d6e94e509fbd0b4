"""The compiler gives each CUDA kernel the registers of the table at most, and spills nothing. More registers mean fewer warps
at a time, and these kernels live by having many loads in flight."""
import os
import re
import subprocess
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = os.path.join(SOURCE, "worker", "numerics", "kernels")
NVCC = os.environ["CHAINFLEET_NVCC"]
FUNCTION = re.compile(r"Compiling entry function '.*?(?:Update(ILb[01]E)|pass\d+([A-Za-z]+?)E)\S*'")
UPDATES = {"ILb0E": "Update of theta", "ILb1E": "Update of theta and theta_a"}
# Registers of a thread with nvcc 13.0 for sm_90; 32 keep all 2,048 threads of a multiprocessor there.
MOST = {
    "update_cuda.cu": {"Update of theta": 32, "Update of theta and theta_a": 32},
    "pass_cuda.cu": {
        "Accumulate": 32, "AnchoredLangevin": 48, "Average": 48, "Baoa": 40, "Blend": 32, "BsamStep": 55, "DiagonalDraw": 47, "Dot": 32,
        "Friction": 40, "HeavyBall": 32, "Kick": 32, "NormalAround": 48, "Perturb": 28, "Propose": 48, "Residual": 40, "SampleScaled": 50,
        "Sharpen": 51,
    },
}


def compiled(source):
    """(registers, bytes spilled) of each kernel."""
    said = subprocess.run([NVCC, "-std=c++17", "-O3", "-I", SOURCE, "-cubin", "-arch=sm_90", "-Xptxas", "-v", "-o", os.devnull, os.path.join(KERNELS, source)],
                          capture_output=True, text=True, check=True).stderr
    kernels, name = {}, None
    for line in said.splitlines():
        if match := FUNCTION.search(line):
            name = UPDATES.get(match[1]) or match[2]
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(match[1]) + int(match[2])
        elif match := re.search(r"Used (\d+) registers", line):
            kernels[name] = (int(match[1]), spilled)
    return kernels


class CompiledKernels(unittest.TestCase):
    def test_registers_and_spills_are_within_the_table(self):
        for source, most in MOST.items():
            kernels = compiled(source)
            self.assertEqual(set(kernels), set(most))
            for name, (registers, spilled) in kernels.items():
                with self.subTest(kernel=name):
                    self.assertLessEqual(registers, most[name])
                    self.assertEqual(spilled, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
