"""A flame graph as SVG: width is time, the functions that ran are on top. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

from bench.stacks import OTHER, Stack

_WIDTH, _ROW, _LETTER, _TOP = 1600, 16, 6.6, 44
# What is narrower, in pixels, is left out.
_LEAST = 2.0
COLORS = {
    "garbage collection": "#555555",
    "import": "#c9b18b",
    "checksum": "#9a86d8",
    "upload": "#6f9bd8",
    "compress": "#e0704f",
    "build batches": "#e3b341",
    "consume": "#5fa45f",
    "encode": "#d98cb3",
    "part by hour": "#7cb8b8",
    "plan, manifest": "#a8a8a8",
    "Spark": "#b9c46a",
    OTHER: "#dddddd",
}


@dataclass
class _Node:
    samples: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    children: dict[str, "_Node"] = field(default_factory=dict)

    def add(self, frames: tuple[str, ...], samples: int, part: str) -> None:
        self.samples += samples
        self.parts[part] = self.parts.get(part, 0) + samples
        if frames:
            self.children.setdefault(frames[0], _Node()).add(frames[1:], samples, part)

    def depth(self) -> int:
        return 1 + max((child.depth() for child in self.children.values()), default=0)


def flame_graph(title: str, stacks: Iterable[Stack]) -> str:
    """An SVG document; a function's color is that of the part most of its time belongs to."""
    root = _Node()
    for stack in stacks:
        root.add((stack.kind, *stack.frames), stack.samples, stack.part)
    height = _TOP + _ROW * (root.depth() + 1)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        'font-family="monospace" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="4" y="16" font-size="14">{escape(title)}</text>',
    ]
    for number, (part, color) in enumerate(COLORS.items()):
        left = 4 + number * (_WIDTH // len(COLORS))
        drawn.append(f'<rect x="{left}" y="24" width="12" height="12" fill="{color}"/>')
        drawn.append(f'<text x="{left + 16}" y="34">{escape(part)}</text>')
    _draw(root, "all", 0.0, height - _ROW, _WIDTH / max(1, root.samples), root.samples, drawn)
    return "\n".join([*drawn, "</svg>\n"])


def _draw(node: _Node, name: str, left: float, top: int, scale: float, total: int, drawn: list[str]) -> None:
    width = node.samples * scale
    if width < _LEAST:
        return
    color = COLORS[max(node.parts, key=lambda part: node.parts[part])] if node.parts else "white"
    letters = int((width - 4) / _LETTER)
    label = escape(name[:letters]) if letters > 2 else ""
    drawn.append(
        f"<g><title>{escape(name)}: {node.samples} samples, {node.samples / max(1, total):.1%}</title>"
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_ROW - 1}" fill="{color}" rx="1"/>'
        f'<text x="{left + 2:.1f}" y="{top + 11}">{label}</text></g>'
    )
    for child_name, child in sorted(node.children.items()):
        _draw(child, child_name, left, top - _ROW, scale, total, drawn)
        left += child.samples * scale
