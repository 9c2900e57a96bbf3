"""Where the time of the job's Python processes goes: samples of py-spy, as folded stacks, a flame graph and a summary.

py-spy stops a process for each sample and reads its stack, native functions included, but only of threads that Python
knows. What librdkafka's own threads use is told by the kernel, by thread name. Figures of a profiled job are no
measurement: it takes longer.
"""

import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.flame import flame_graph
from bench.stacks import Stack, by_function, by_part, parse
from bench.usage import Kind, Usage

RATE = 50
_FUNCTIONS = 10


@dataclass(frozen=True)
class Profile:
    """The files of one profiled job: `name` in `directory`, with several suffixes."""

    directory: Path
    name: str

    @property
    def folded(self) -> Path:
        """The profiler's raw output, a stack a line."""
        return self.directory / f"{self.name}.folded"

    def command(self) -> list[str]:
        """What goes before the command that is to be sampled with all that comes of it."""
        profiler = Path(sysconfig.get_path("scripts")) / "py-spy"
        if not profiler.exists():
            raise RuntimeError(f"there is no {profiler}: `make install` installs it (extra dev)")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.folded.unlink(missing_ok=True)
        options = f"record --subprocesses --native --nolineno --rate {RATE} --format raw --output".split()
        return [str(profiler), *options, str(self.folded), "--"]

    def finish(self, usage: Usage) -> str:
        """Write the flame graph and the summary. Returns the summary.

        :param usage: of the job, with threads.
        :raises RuntimeError: there are no samples.
        """
        stacks = parse(self.folded.read_text(errors="replace").splitlines()) if self.folded.exists() else []
        if not stacks:
            raise RuntimeError(f"py-spy has seen no Python process (it needs the right to ptrace); see {self.folded}")
        (self.directory / f"{self.name}.svg").write_text(flame_graph(self.name, stacks))
        text = summary(self.name, stacks, usage.threads)
        (self.directory / f"{self.name}.txt").write_text(text)
        return text


def summary(name: str, stacks: list[Stack], threads: Mapping[Kind, Mapping[str, float]]) -> str:
    """CPU seconds by part, by thread, and the functions that ran longest. Pure.

    :param threads: CPU seconds by kind of process and name of thread.
    """
    lines = [
        f"{name}: CPU seconds, of a job that was slowed down by sampling; {sum(s.samples for s in stacks)} samples"
    ]
    kinds = sorted(threads, reverse=True)
    mine = {kind: [stack for stack in stacks if stack.kind == kind] for kind in kinds}
    # The profiler counts in which threads were ready to run; the kernel knows for how long they did.
    python = {kind: sum(s for thread, s in threads[kind].items() if thread.startswith("python")) for kind in kinds}
    each = {kind: python[kind] / max(1, sum(s.samples for s in mine[kind])) for kind in kinds}
    parts = {kind: by_part(mine[kind]) for kind in kinds}
    rows = {part: {kind: parts[kind][part] * each[kind] for kind in kinds} for part, _ in by_part(stacks).most_common()}
    names = {thread for kind in kinds for thread in threads[kind] if not thread.startswith("python")}
    rows |= {f"thread {name}": {kind: threads[kind].get(name, 0.0) for kind in kinds} for name in sorted(names)}
    rows |= {"all": {kind: sum(threads[kind].values()) for kind in kinds}}
    lines.append(f"  {'':24}" + "".join(f"{kind:>9}" for kind in kinds))
    lines += [f"  {title:24}" + "".join(f"{row[kind]:9.2f}" for kind in kinds) for title, row in rows.items()]
    for kind in kinds:
        lines.append(f"{kind}: the functions that ran longest themselves")
        for function, samples in by_function(mine[kind]).most_common(_FUNCTIONS):
            seconds = samples * each[kind]
            lines.append(f"  {seconds:7.2f} s {seconds / python[kind]:6.1%}  {function}")
    return "\n".join(lines) + "\n"
