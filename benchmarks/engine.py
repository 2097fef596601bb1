"""The engine's benchmark as a script: python benchmarks/engine.py [--json] [--quick] [--no-plain].

The same as `lapsus bench engine`; docs/performance.md keeps what it printed.
"""

import argparse
import json

from lapsus.training import bench

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-plain", dest="plain", action="store_false")
    options = parser.parse_args()
    report = bench.measure(quick=options.quick, plain=options.plain)
    print(json.dumps(report, indent=2) if options.json else bench.tables(report))
