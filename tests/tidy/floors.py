"""Permitted includes: the table of floors in docs/explanation/architecture.md."""

import re

from source_tree import Violation

FLOORS = {
    "core/base": 0,
    "core/domain": 1, "core/formats": 1, "core/diagnostics": 1, "core/scores": 1, "core/tls": 1,
    "core/store": 2, "core/metrics": 2, "core/wire": 2,
    "server/control": 3, "server/predict": 3, "worker/numerics": 3,
    "worker/runtime": 4, "worker/telemetry": 4, "server/telemetry": 4, "server/intake": 4, "server/adapters": 4,
    "server/scale": 4, "server/http": 4,
    "server/rpc": 5, "worker/rpc": 5, "client/lib": 5,
    "server/main.cc": 6, "worker/main.cc": 6, "client/cli": 6,
}

# Library: how its includes look, and the folders that may have them.
_OUTER = r"(core/wire|server/rpc|worker/rpc|client/lib|client/cli|server/main\.cc|worker/main\.cc)"
LIBRARIES = {
    "torch": (r"(torch|ATen|c10|caffe2)/", r"worker/numerics/"),
    "protobuf": (r"(google/(protobuf|rpc)|chainfleet/v1|inference)/", _OUTER),
    "gRPC": (r"(grpc|grpcpp)/", _OUTER),
    "CUDA": (r"cu(da|rand|blas)[a-z_]*\.h", r"worker/(numerics|telemetry)/"),
    "Highway": (r"hwy/", r"worker/numerics/"),
    "SQLite": (r"sqlite3", r"core/store/state_store/"),
    "libpqxx": (r"pqxx|libpq-fe", r"core/store/state_store/"),
    "curl": (r"curl/", r"core/store/blob_store/"),
    "pugixml": (r"pugixml", r"core/store/blob_store/"),
    "OpenSSL": (r"openssl/", r"core/(store|tls)/"),
    "libsodium": (r"sodium\.h", r"core/tls/"),
    "libseccomp": (r"seccomp\.h", r"worker/confinement\.cc"),
    "nlohmann-json": (r"nlohmann/", r"(core/(formats|store|metrics)|server/(http|rpc/gateway)|client/cli)/"),
    "prometheus-cpp": (r"prometheus/", r"core/metrics/"),
    "libmicrohttpd, GnuTLS": (r"(microhttpd\.h|gnutls/)", r"(server/http|core/(metrics|tls/httpd))/"),
    "spdlog": (r"spdlog/", r"core/base/"),
    "zlib, libzip, libblosc, libzstd": (r"(zlib|zip|blosc|zstd)\.h", r"core/formats/"),
    "yaml-cpp": (r"yaml-cpp/", r"(client/cli/|(server|worker)/main\.cc)"),
    "CLI11": (r"CLI/", r"(client/cli/|(server|worker)/main\.cc|server/tenant_flags\.(h|cc))"),
    "Abseil": (r"absl/", r""),
    "the system": (r"([a-z0-9_]+(\.h)?|(sys|linux|netinet|arpa|sanitizer)/[a-z_]+\.h)$", r""),
}
_OURS = re.compile(r"(core|server|worker|client|tests)/")
_TORCH_IN_HEADERS = "ATen/core/Tensor.h"  # the only light one
_GRPC_IN_WIRE = r"grpcpp/(support/status|security/.*)\.h"
_DRAW_CODEC = "core/store/draw_codec/"


def unit(path):
    """The key of FLOORS that `path` belongs to, or None."""
    parts = path.split("/")
    # Files beside main.cc (the composition root) have its floor.
    key = f"{parts[0]}/main.cc" if len(parts) == 2 else "/".join(parts[:2])
    return key if key in FLOORS else None


def _check_ours(source, line, name):
    def bad(message):
        return [Violation(source.path, line, "floor", f"includes {name}: {message}")]

    if name.startswith("tests/"):
        return bad("product code never includes tests")
    mine, theirs = unit(source.path), unit(name)
    if theirs is None:
        return bad("its folder has no floor in tests/tidy/floors.py")
    binary, other = mine.split("/")[0], theirs.split("/")[0]
    if other not in ("core", binary):
        return bad(f"{binary} and {other} are different binaries")
    if mine != theirs and FLOORS[theirs] >= FLOORS[mine]:
        return bad(f"floor {FLOORS[mine]} ({mine}) may not see floor {FLOORS[theirs]} ({theirs})")
    if theirs == "core/wire" and FLOORS[mine] < 5:
        return bad("core/wire is for floor 5 and above")
    if theirs == "core/store" and not name.startswith(_DRAW_CODEC):
        if mine == "worker/numerics" or source.path.startswith(_DRAW_CODEC):
            return bad("of core/store only draw_codec may be seen here")
        if mine == "core/store" and name.split("/")[2] != source.path.split("/")[2]:
            return bad("the parts of core/store see each other only through draw_codec")
    return []


def _check_library(source, line, name):
    for library, (pattern, folders) in LIBRARIES.items():
        if re.match(pattern, name):
            if not re.match(folders, source.path):
                return [Violation(source.path, line, "floor", f"includes {name}: {library} is not for this folder")]
            if library == "torch" and source.path.endswith(".h") and name != _TORCH_IN_HEADERS:
                return [Violation(source.path, line, "floor",
                                  f"includes {name}: headers may have {_TORCH_IN_HEADERS} or a forward declaration")]
            if library == "gRPC" and source.path.startswith("core/wire/") and not re.match(_GRPC_IN_WIRE, name):
                return [Violation(source.path, line, "floor", f"includes {name}: core/wire knows statuses and credentials")]
            return []
    return [Violation(source.path, line, "floor", f"includes {name}: a library without a place in tests/tidy/floors.py")]


def check(sources):
    violations = []
    for source in sources:
        if not source.is_product():
            continue
        if unit(source.path) is None:
            violations.append(Violation(source.path, 1, "floor", "its folder has no floor in tests/tidy/floors.py"))
            continue
        own_targets = source.path.rpartition("/")[0] + "/"
        for line, name in source.includes():
            if name.startswith(own_targets):
                continue
            find = _check_ours if _OURS.match(name) else _check_library
            violations += find(source, line, name)
    return violations


def _folder(path):
    """The node of `path` in the graph of folders. No file includes a main.cc, so that one stands alone."""
    return path if path.endswith("/main.cc") else path.rpartition("/")[0]


def _shortest_way(graph, start, end):
    """Folders from `start` to `end`, or None."""
    ways, seen = [[start]], {start}
    for way in ways:
        for folder in sorted(graph.get(way[-1], {})):
            if folder == end:
                return way + [end]
            if folder not in seen:
                seen.add(folder)
                ways.append(way + [folder])
    return None


def check_cycles(sources):
    """No folder includes, through others, itself: one violation for each include that closes a cycle."""
    graph = {}
    for source in sources:
        for line, name in source.includes() if source.is_product() else []:
            if _OURS.match(name) and _folder(name) != _folder(source.path):
                graph.setdefault(_folder(source.path), {}).setdefault(_folder(name), Violation(
                    source.path, line, "cycle", f"includes {name}"))
    violations = []
    for folder, others in sorted(graph.items()):
        for other, violation in sorted(others.items()):
            back = _shortest_way(graph, other, folder)
            if back:
                violations.append(Violation(violation.path, violation.line, violation.rule,
                                            f"{violation.message}, and {' includes '.join(back)}"))
    return violations
