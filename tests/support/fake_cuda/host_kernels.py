"""Makes C++ of the host of a .cu file: launches become calls of fake_cuda::Launch, the rest stays as it is.

    host_kernels.py FROM.cu TO.cc
"""
import re
import sys

LAUNCH = re.compile(r"(\S+?)<<<([^,]+), ([^,]+), 0, (.+?)>>>\(")


def main():
    source, target = sys.argv[1:]
    with open(source) as f:
        text, launches = LAUNCH.subn(r"fake_cuda::Launch(\2, \3, \4, \1, ", f.read())
    if launches == 0 or "<<<" in text.replace("fake_cuda::Launch", ""):
        sys.exit(f"{source}: {launches} launches understood, and there are others")
    text = re.sub(r"#pragma unroll.*\n", "", text)  # GCC would warn
    # Pass kernel arguments by reference, so that they are not copied for each thread.
    text = re.sub(r"(?<=__global__ void )(\w+\()([^)]*)", lambda m: m[1] + re.sub(r"(\w+) (\w+)(?=,|$)", r"const \1& \2", m[2]), text)
    with open(target, "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
