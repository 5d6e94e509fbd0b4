#!/usr/bin/env python3
"""Writes what a release is made of and its checksums: sbom.cdx.json (CycloneDX 1.5) and SHA256SUMS beside the files.

  deploy/sbom.py FOLDER PROGRAM...    # FOLDER has the release's files; the programs are those that are in them

The parts are the Debian packages of the programs' shared libraries, the libraries that were compiled in or embedded
(deploy/packages.txt), and the wheels of PyTorch. The same files give the same texts.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.parse
import uuid

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
NAMES = ("sbom.cdx.json", "SHA256SUMS")


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def packages_of(programs):
    """Names of the Debian packages that own the programs' shared libraries."""
    libraries = {os.path.realpath(path) for path in re.findall(r"=> (/(?:usr/)?lib/\S+)", said("ldd", *programs))}
    # dpkg knows some files by the path below / and some by that below /usr.
    paths = [path for found in sorted(libraries) for path in (found, found.removeprefix("/usr"))]
    owners = subprocess.run(["dpkg", "-S", *paths], capture_output=True, text=True).stdout
    return {line.split(":")[0] for line in owners.splitlines()}


def compiled_in():
    with open(os.path.join(ROOT, "deploy", "packages.txt")) as f:
        named = [line.split("#")[0].strip() for line in f]
    return {name for name in named if name.startswith("lib") or name.endswith("-dev")}  # libjs-chart.js has no -dev


def quoted(text):
    return urllib.parse.quote(text, safe="")


def part(name, version, purl):
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def parts(programs):
    listed = said("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\n", *sorted(packages_of(programs) | compiled_in()))
    found = [part(name, version, f"pkg:deb/debian/{quoted(name)}@{quoted(version)}?arch={architecture}&distro=debian-12")
             for name, version, architecture in (line.split() for line in sorted(set(listed.splitlines())))]
    with open(os.path.join(ROOT, "deploy", "libtorch-requirements.txt")) as f:
        found += [part(name, version, f"pkg:pypi/{name}@{version}") for name, version in re.findall(r"^([\w-]+)==(\S+)", f.read(), re.M)]
    return found


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def main(folder, *programs):
    sums = {name: digest(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
            if name not in NAMES and os.path.isfile(os.path.join(folder, name))}
    with open(os.path.join(ROOT, "core", "base", "version.h")) as f:
        version = re.search(r'kVersion\[\] = "([^"]+)"', f.read()).group(1)
    components = parts(programs)
    files = [{"type": "file", "bom-ref": name, "name": name, "hashes": [{"alg": "SHA-256", "content": sums[name]}]} for name in sums]
    about = {"type": "application", "bom-ref": "chainfleet", "name": "chainfleet", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    refs = [one["bom-ref"] for one in components]
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(sums))}",
            "version": 1, "metadata": {"component": about}, "components": [*components, *files],
            "dependencies": [{"ref": "chainfleet", "dependsOn": refs}]}
    with open(os.path.join(folder, NAMES[0]), "w") as f:
        json.dump(bill, f, indent=1)
        f.write("\n")
    sums[NAMES[0]] = digest(os.path.join(folder, NAMES[0]))
    with open(os.path.join(folder, NAMES[1]), "w") as f:
        f.writelines(f"{sums[name]}  {name}\n" for name in sorted(sums))


if __name__ == "__main__":
    main(*sys.argv[1:])
