"""python -m scripts.attack [--minutes M] [--seed N]: search with new seeds for what the fixed seeds of the tests miss.

Half of the time is for the properties of decoders, encoders and layouts: one file of tests after the other, each round
with a seed of its own, until the time is over. The other half is for the model of the whole archiver (on the twins,
there with Spark's SQL, and on three real brokers, of which one is cut off at times) and for restores to a real broker
whose processes are killed, frozen and woken. Each failure is printed with the example to
keep as a test, and with the command that repeats it.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator

from scripts.stack.paths import ROOT

# Avro beside fastavro and Java's library, Protobuf beside google.protobuf, JSON beside jsonschema, formats beside the
# readers of others.
PROPERTIES = (
    "tests/unit/test_decode_avro.py",
    "tests/unit/test_avro_datum.py",
    "tests/unit/test_decode_protobuf.py",
    "tests/unit/test_decode_json.py",
    "tests/unit/test_decode_json_schema.py",
    "tests/unit/test_json_unnamed.py",
    "tests/unit/test_poison_records.py",
    "tests/unit/test_mapper.py",
    "tests/unit/test_paths.py",
    "tests/contract/test_avro_beside_java.py",
    "tests/contract/test_formats_typed.py",
    "tests/contract/test_formats_of_a_schema.py",
    "tests/contract/test_csv.py",
)
# Modules of `tests.support` that search for some minutes, with their options.
MODELS = (
    ("model_run", "--twins"),
    ("model_run", "--sql"),
    ("model_run", "--three-brokers"),
    ("restore_run",),
)
# What pytest and hypothesis print of a failure: the assertion, and the example that is the shortest.
_ERROR_LINE = re.compile(r"^E  .*|^FAILED .*|^ERROR .*", re.MULTILINE)
_PARAMETERS = re.compile(r"Falsifying example: .*?^(?:E +)?\)", re.MULTILINE | re.DOTALL)


def attack_properties(seed: int, test: str) -> int:
    """Run the properties of one file, and print their failures. Return pytest's exit code."""
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--color=no", "-p", "no:cacheprovider",
        "--hypothesis-profile=attack", f"--hypothesis-seed={seed}", test,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    print(f"{test}, seed {seed}: {lines[-1] if lines else 'no output'}", flush=True)
    if done.returncode:
        print(failure(done.stdout))
        print(f"repeat it: {' '.join(command)}", flush=True)
    return done.returncode


def rounds(first: int) -> Iterator[tuple[int, str]]:
    """Yield seeds and files without end: each round has the next seed, and its files in an order by that seed."""
    for seed in itertools.count(first):
        yield from ((seed, test) for test in random.Random(seed).sample(PROPERTIES, len(PROPERTIES)))


def failure(output: str) -> str:
    """Return what to keep of pytest's output: the errors, and hypothesis' examples."""
    examples = [match[0] for match in _PARAMETERS.finditer(output)]
    falsified = [match[0] for match in _ERROR_LINE.finditer(output) if "Falsifying example" not in match[0]]
    return "\n".join([*falsified, *examples]) or output[-4000:]


def attack_with(seed: int, minutes: float, module: str, *options: str) -> int:
    """Run a module of `tests.support` for some minutes; it prints its failures. Return its exit code."""
    print(f"{module} {' '.join(options)}, seed {seed}, {minutes:.1f} minutes", flush=True)
    arguments = ["-m", f"tests.support.{module}", *options, "--seed", str(seed), "--minutes", str(minutes)]
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first round; each later round has the next number")
    options = parser.parse_args()
    first = options.seed or random.SystemRandom().randrange(10**9)
    end, worst = time.monotonic() + options.minutes * 30, 0
    for seed, test in rounds(first):
        if time.monotonic() > end:
            break
        worst = max(worst, attack_properties(seed, test))
    for module, *choice in MODELS:
        worst = max(worst, attack_with(first, options.minutes / 2 / len(MODELS), module, *choice))
    print("nothing was found" if not worst else "there are failures: keep each example above as a test", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
