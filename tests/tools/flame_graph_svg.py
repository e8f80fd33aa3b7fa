"""A picture of the flame graph that xpu-report writes as a page, for documents: frames, positions
and colors are those of the page.

flame_graph_svg.py REPORT CAPTURE OUTPUT.svg [options of --flamegraph]"""

import html
import json
import pathlib
import re
import subprocess
import sys

WIDTH, ROW, MARGIN, TITLE = 1000, 17, 4, 22
CHARACTER = 6.05  # of 10 px monospace
NARROWEST = 0.3
# By kind, as in report/views/flame_graph/flame_graph_picture.js: hue, saturation, lightness.
COLOURS = [(40, 88, 70), (285, 48, 80), (207, 72, 73), (140, 48, 64), (2, 78, 77), (225, 10, 80),
           (76, 58, 67)]


def data_of_page(report, capture, options):
    page = subprocess.run([report, "--flamegraph", *options, str(capture)], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])


def rows_of(data):
    """(depth, name, kind, first ns, ns) of each node, a node's own time after its children's."""
    nodes = data["nodes"]
    count = len(nodes["depth"])
    total = list(nodes["ns"])
    for i in range(count - 1, 0, -1):
        parent = i - 1
        while nodes["depth"][i] > 0 and nodes["depth"][parent] >= nodes["depth"][i]:
            parent -= 1
        if nodes["depth"][i] > 0:
            total[parent] += total[i]
    behind = [0] * (max(nodes["depth"]) + 2)  # where the next node of each depth begins
    for i, depth in enumerate(nodes["depth"]):
        frame = nodes["frame"][i]
        yield (depth, data["frames"]["name"][frame], data["frames"]["kind"][frame], behind[depth],
               total[i])
        behind[depth + 1] = behind[depth]
        behind[depth] += total[i]


def text_for(name, width):
    room = int((width - 6) / CHARACTER)
    if room < 3:
        return ""
    return name if len(name) <= room else name[:room - 2] + ".."


def draw(rows, title):
    rows = list(rows)
    whole = sum(row[4] for row in rows if row[0] == 0)
    height = TITLE + ROW * (max(row[0] for row in rows) + 1) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="monospace" font-size="10">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{MARGIN}" y="15" font-size="12">{html.escape(title)}</text>',
    ]
    scale = (WIDTH - 2 * MARGIN) / whole
    for depth, name, kind, first, ns in rows:
        x, width = MARGIN + first * scale, ns * scale
        if width < NARROWEST:
            continue
        y = height - MARGIN - ROW * (depth + 1)
        hue, saturation, lightness = COLOURS[kind]
        lines.append(f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.2):.1f}" '
                     f'height="{ROW - 1}" fill="hsl({hue} {saturation}% {lightness}%)"/>')
        text = text_for(name, width)
        if text:
            lines.append(f'<text x="{x + 3:.1f}" y="{y + 12}">{html.escape(text)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def write_picture(report, capture, output, options):
    data = data_of_page(report, capture, options)
    pathlib.Path(output).write_text(draw(rows_of(data), data["title"]))


if __name__ == "__main__":
    write_picture(*sys.argv[1:4], sys.argv[4:])
