"""compare.py PYTHON GUIDE: the posterior of the guide's Stan program, which PYTHON runs, beside that of its session."""
import contextlib
import doctest
import json
import os
import re
import subprocess
import sys
import tempfile

import python_package  # noqa: F401  first: it says where the next ones are
import arviz
import chainfleet as cf
import numpy

FIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fit.py")
NAMES = {"b[0]": "weights[0]", "b[1]": "weights[1]", "a[0]": "intercept[0]"}  # Stan's and ours


def session(guide):
    """The names of the guide's session after its last line."""
    test = doctest.DocTestParser().get_doctest(guide, {}, "guide", "guide", 0)
    runner = doctest.DocTestRunner(verbose=False)
    if runner.run(test, clear_globs=False).failed:
        sys.exit("compare: the session prints something else")
    return test.globs


def moments(chains):
    """Mean, deviation and the standard errors of both of `chains` [chains, draws]."""
    return [float(value) for value in (numpy.mean(chains), numpy.std(chains), arviz.mcse(chains, method="mean"), arviz.mcse(chains, method="sd"))]


def main(python, path):
    with open(path, encoding="utf-8") as file:
        guide = file.read()
    [program] = re.findall(r"^```stan\n(.*?)^```$", guide, re.M | re.S)
    with tempfile.TemporaryDirectory(prefix="chainfleet-stan-") as folder, contextlib.chdir(folder):
        os.environ["XDG_DATA_HOME"] = folder
        try:
            found = session(guide)
            x, y = found["x"], found["y"]
            standard = (x - x.mean(axis=0)) / x.std(axis=0)
            asked = {"program": program, "data": {"N": len(x), "D": x.shape[1], "x": standard.tolist(), "y": y.tolist()}}
            fit = subprocess.run([python, "-IB", FIT], input=json.dumps(asked),
                                 capture_output=True, text=True, check=True)
            posterior = found["idata"].posterior
            ours = {f"{name}[{i}]": posterior[name].values[..., i] for name in ("weights", "intercept") for i in range(posterior[name].shape[-1])}
        finally:
            cf.down()
    print("| parameter | Stan: mean | sd | chainfleet: mean | sd |\n| --- | --- | --- | --- | --- |")
    far = []
    for name, chains in json.loads(fit.stdout).items():
        stan, mine = moments(numpy.reshape(chains, (1000, 4)).T), moments(ours[NAMES[name]])
        print(f"| `{NAMES[name]}` | {stan[0]:.3f} | {stan[1]:.3f} | {mine[0]:.3f} | {mine[1]:.3f} |")
        far += [name for i in (0, 1) if abs(stan[i] - mine[i]) > 5 * numpy.hypot(stan[i + 2], mine[i + 2])]
    sys.exit(f"compare: further apart than 5 standard errors: {far}" if far else 0)


main(*sys.argv[1:])
