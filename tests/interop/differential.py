"""Sends the same requests to chainfleet and to a real Triton, and makes the table of their answers."""
import grpc_requests
import http_requests
from answers import ask_grpc, ask_http

FAILURES = ("no answer", "INTERNAL", "UNKNOWN")


NOT_500 = "an error that the caller must correct is 4xx or INVALID_ARGUMENT, not 500 or INTERNAL"


def reason(request, chainfleet, triton):
    """Why they differ; empty if there is no reason."""
    if request.why:
        return request.why
    blames = (triton.status == 500 and chainfleet.status in (400, 413)) or (triton.status, chainfleet.status) == ("INTERNAL", "INVALID_ARGUMENT")
    return NOT_500 if blames else ""


def judge(request, chainfleet, triton, same):
    """The fault, if there is one."""
    if chainfleet.status in FAILURES or str(chainfleet.status).startswith("5"):
        return "chainfleet fails"
    if same:
        return "differs no more: its reason is out of date" if request.why else ""
    return "" if reason(request, chainfleet, triton) else "differs without a reason"


def table(title, rows):
    """`rows`: for (answer of Triton, answer of chainfleet, why they differ) the requests: their names by method."""
    counts = {why: 0 for _, _, why in rows}
    for (_, _, why), requests in rows.items():
        counts[why] += sum(map(len, requests.values()))
    yield f"\n## {title}\n\n{counts.get('', 0)} of {sum(counts.values())} requests get the same answer.\n"
    yield "| requests | Triton | chainfleet | why they differ |\n| --- | --- | --- | --- |"
    for (triton, chainfleet, why), requests in sorted(rows.items(), key=lambda row: not row[0][2]):
        listed = (f"`{method}`" + ": " * any(names) + ", ".join(names) for method, names in requests.items())
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in ("; ".join(listed), triton, chainfleet, why or "same")) + " |"


def compare(title, requests, ask, ours, theirs):
    """The table, and the faults."""
    rows, faults = {}, []
    for request in requests:
        triton, chainfleet = ask(theirs, request), ask(ours, request)
        same = chainfleet.same_as(triton)
        row = str(triton), str(chainfleet), "" if same else reason(request, chainfleet, triton)
        rows.setdefault(row, {}).setdefault(request.method, []).append(request.name)
        if fault := judge(request, chainfleet, triton, same):
            faults.append(f"{fault}: {request.method} {request.name}\n  Triton     {triton} {triton.body}\n  chainfleet {chainfleet} {chainfleet.body}")
    return list(table(title, rows)), faults


def check(fleet, triton):
    """The lines of both tables, and the faults."""
    # gRPC first: after the last requests over HTTP Triton's model is gone.
    lines, faults = compare("gRPC", grpc_requests.requests(), ask_grpc, fleet.address, triton.grpc_address)
    more_lines, more_faults = compare("HTTP", http_requests.requests(), ask_http, fleet.http_address, triton.http_address)
    return more_lines + lines, more_faults + faults
