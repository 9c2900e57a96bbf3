"""python -m bench: the table, and JSON for machines."""

import argparse
import json
import sys
import time
from pathlib import Path

from bench.job import JobSettings
from bench.scenarios import Bench, Scenario
from bench.services import services
from bench.table import table
from scripts.stack.errors import StackError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the archive job beside the floors.")
    parser.add_argument("--records", type=int, default=1_000_000, help="a scenario (default 1,000,000)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1200, 120], help="bytes of a value")
    parser.add_argument(
        "--scenario",
        choices=["hour", "hours48"],
        nargs="+",
        default=["hour", "hours48"],
        help="hour: each size, all in one hour; hours48: the first size, 48 hours interleaved",
    )
    parser.add_argument("--no-floors", action="store_true", help="leave the floors out")
    parser.add_argument("--cores", type=int, default=2, help="of Spark, in one JVM")
    parser.add_argument("--reader", choices=["auto", "native", "spark"], default="auto", help="how records are read")
    parser.add_argument("--store", nargs="+", default=[], metavar="KEY=VALUE", help="of the archive's section store")
    parser.add_argument("--conf", nargs="+", default=[], metavar="KEY=VALUE", help="for spark-submit")
    parser.add_argument("--fresh", action="store_true", help="make the topics anew")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for."""
    options = _arguments()
    began = time.monotonic()
    store = dict(pair.split("=", 1) for pair in options.store)
    # For other formats, gzip and PUT of lines is no floor.
    floors = not options.no_floors and not {"format", "content", "codec"} & store.keys()
    wanted = [Scenario(size=size, hours=1) for size in options.sizes if "hour" in options.scenario]
    if "hours48" in options.scenario:
        wanted.append(Scenario(size=options.sizes[0], hours=48))
    # Topics as they are, objects smaller, and temporary files.
    needed = 1 + 2 * options.records * sum(s.size + 100 for s in wanted) / (1 << 30)

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {what}", file=sys.stderr, flush=True)

    settings = JobSettings(cores=options.cores, store=store, conf=options.conf, reader=options.reader)
    with services(options.fresh, needed) as running:
        bench = Bench(running, settings, say)
        results = [bench.run(scenario, options.records, floors) for scenario in wanted]
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([result.to_dict() for result in results], indent=2) + "\n")


if __name__ == "__main__":
    try:
        main()
    except (StackError, RuntimeError) as error:
        sys.exit(f"bench: {error}")
