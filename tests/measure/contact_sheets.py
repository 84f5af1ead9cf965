"""Draw the dashboards as a Prometheus shows them that saw a service and an operator in all their states.

    make contact-sheets        # writes docs/dashboards/*.png; needs Debian's prometheus and what tests/apiserver needs

The story is that of tests/grafana, told anew; it takes about two minutes.
"""

import argparse
import json
import tempfile
from pathlib import Path

from assay.platform.cpu import cpu_model
from pictures.sheet import draw_sheet
from support.monitored import told

ROOT = Path(__file__).resolve().parents[2]
LEAD_S = 3  # seconds before the first chapter: the axis shall not begin in the middle of something


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "dashboards", help="folder for the pictures")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder, told(ROOT, Path(folder)) as story:
        print(f"{cpu_model()}; k6: {story.k6}")
        start, *_, end = story.at.values()
        source = story.prometheus.source(start - LEAD_S, end)
        for file in sorted((ROOT / "charts" / "assay" / "files" / "dashboards").iterdir()):
            picture = out / f"{file.stem}.png"
            draw_sheet(
                json.loads(file.read_text()), source, story.at, story.at["gone"] - 2, picture
            )  # while all were there
            print(f"wrote {picture}, {picture.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
