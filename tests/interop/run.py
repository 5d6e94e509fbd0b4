"""run.py [PAGE]: all parts of tests/run_interop.sh. With PAGE its tables are written anew, below its line TABLES.

Exit status 1: an answer differs from Triton's without a reason, a reason is out of date, a client gets another answer, or a
request of schemathesis is answered with a 5xx.
"""
import sys

import clients
import differential
import schemas
import servers

TABLES = "<!-- tests/run_interop.sh writes the rest -->\n"


def main():
    with servers.both() as (fleet, triton):
        lines, faults = differential.check(fleet, triton)
        for part in (clients, schemas):
            more_lines, more_faults = part.check(fleet)
            lines, faults = lines + more_lines, faults + more_faults
    print("\n".join(lines))
    for fault in faults:
        print(f"interop: {fault}", file=sys.stderr)
    for path in sys.argv[1:]:
        with open(path) as page:
            kept = page.read().partition(TABLES)[0]
        with open(path, "w") as page:
            page.write(kept + TABLES + "\n".join(lines) + "\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
