"""The compiler gives each CUDA kernel the registers of the table at most and keeps all its variables there, and kernels move 16
bytes at a time. More registers mean fewer warps at a time, and these kernels live by having many loads in flight."""
import glob
import os
import re
import subprocess
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = glob.glob(os.path.join(SOURCE, "worker", "numerics", "kernels", "*.cu"))
NVCC = os.environ["CHAINFLEET_NVCC"]
MODULE = os.environ["CHAINFLEET_CUDA_MODULE"]
NAME = re.compile(r"Apply\w*?pass\d+([A-Za-z]+?)E|(AddTiles)INS_\d+([A-Za-z]+?)E|(FillIds)")
ARCHITECTURES = ("sm_80", "sm_90")
# {kernel: (registers of a thread, arenas read, arenas written)} with nvcc 13.0. A GPU gives them out by eights; with 64 a
# multiprocessor holds 1,024 threads.
MOST = {
    "Sgld": (64, 2, 1), "Emcmc": (80, 3, 2), "Accumulate": (40, 2, 1), "AnchoredLangevin": (64, 3, 1), "Average": (80, 5, 4),
    "Baoa": (64, 3, 2), "Blend": (40, 2, 1), "BsamStep": (88, 5, 3), "DiagonalDraw": (64, 3, 1), "Dot": (32, 2, 0),
    "Friction": (64, 3, 2), "HeavyBall": (40, 3, 2), "Kick": (40, 3, 1), "NormalAround": (64, 2, 1), "Perturb": (40, 3, 1),
    "Propose": (64, 3, 1), "Residual": (40, 3, 0), "SampleScaled": (64, 3, 1), "Sharpen": (80, 5, 2),
    "Adamw": (56, 4, 3), "Turn": (80, 5, 2), "Refresh": (64, 2, 1), "Moments": (40, 3, 2), "SquareRatio": (40, 2, 0),
    "Scale": (40, 3, 1), "GatherNoise": (40, 3, 1), "Invert": (40, 2, 1),
    "AddTilesRowOutcome": (32, 0, 0), "AddTilesPassOutcome": (32, 0, 0), "FillIds": (40, 0, 0),
}


def compiled(architecture, *options):
    runs = [subprocess.run([NVCC, "-std=c++17", "-O3", "-I", SOURCE, "-arch", architecture, *options, kernels], capture_output=True, text=True, check=True)
            for kernels in KERNELS]
    return "".join(run.stdout for run in runs), "".join(run.stderr for run in runs)


def name_of(line):
    return "".join(filter(None, NAME.search(line).groups()))


class CompiledKernels(unittest.TestCase):
    def test_registers_are_within_the_table_and_hold_everything(self):
        for architecture in ARCHITECTURES:
            kernels, name = {}, None
            for line in compiled(architecture, "-cubin", "-Xptxas", "-v", "-o", os.devnull)[1].splitlines():
                if "Compiling entry function" in line:
                    name = name_of(line)
                elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
                    beside = sum(map(int, match.groups()))
                elif match := re.search(r"Used (\d+) registers", line):
                    kernels[name] = (int(match[1]), beside)
            self.assertEqual(set(kernels), set(MOST))
            for name, (registers, beside) in kernels.items():
                with self.subTest(architecture=architecture, kernel=name):
                    self.assertLessEqual(registers, MOST[name][0])
                    self.assertEqual(beside, 0)

    def test_each_arena_is_read_and_written_16_bytes_at_a_time(self):
        for body in compiled(ARCHITECTURES[0], "-ptx", "-o", "-")[0].split(".entry ")[1:]:
            name = name_of(body)
            _, read, written = MOST[name]
            with self.subTest(kernel=name):  # 4 times for a thread, whose parameters are 4 times 4
                self.assertEqual(len(re.findall(r"\bld\.global(?:\.nc)?\.v4\.[fb]32", body)), 4 * read)
                self.assertEqual(len(re.findall(r"\bst\.global\.v4\.[fb]32", body)), 4 * written)

    def test_the_module_uses_the_cuda_runtime_of_libtorch(self):
        needed = subprocess.run(["readelf", "-d", MODULE], capture_output=True, text=True, check=True).stdout
        self.assertRegex(needed, r"NEEDED.*\[libcudart\.so\.")


if __name__ == "__main__":
    unittest.main(verbosity=2)
