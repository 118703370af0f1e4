"""Cut the picture of the README, docs/demo.svg, out of a report that `make demo` wrote.

Usage: demo_picture.py partita-demo/report.html
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"
SHOWN_WIDTH = 720
LETTERS = "svg .tick, svg .on-bar, svg .mark { font-size: 13px; }"
"""The picture is shrunk on a phone, so no letter of it may be small."""
TAG = re.compile(r'<svg viewBox="0 0 (\d+) (\d+)"')


def picture(report: str) -> str:
    """The first chart of the report in its narrow form, who owned which partition, with the report's colours inside."""
    start = report.index("<svg", report.index('class="on-phone"'))
    chart = report[start : report.index("</svg>", start) + len("</svg>")]
    style = report[report.index("<style>") + len("<style>") : report.index("</style>")]
    kept = re.findall(r"@media [^{]*\{\s*:root \{[^}]*\}\s*\}|:root \{[^}]*\}|svg [.\w][^{,]*\{[^}]*\}", style)
    found = TAG.match(chart)
    assert found is not None, "the report's first chart has no size"
    width, height = found.groups()
    head, _, rest = chart.partition(">")
    shown = f'width="{SHOWN_WIDTH}" height="{SHOWN_WIDTH * int(height) // int(width)}"'
    paper = f'<rect width="{width}" height="{height}" style="fill: var(--page)"/>'
    return f"{head} {shown}><style>{' '.join(kept)} {LETTERS}</style>{paper}{rest}\n"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    PICTURE.write_text(picture(Path(sys.argv[1]).read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
