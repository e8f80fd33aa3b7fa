"""The picture of the README is what xpu-report makes of a capture from a GPU machine today.

XPU_UPDATE_GOLDEN=1 writes it anew; look at it before you believe it."""

import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/tools"))

import flame_graph_svg  # noqa: E402

PICTURE = ROOT / "man/flame-graph.svg"
CAPTURE = ROOT / "tests/captures/pytorch_python.xpu"
OPTIONS = ["--mode", "gpu", "--python=only", "--kernel-names", "short", "--title",
           "GPU time of a PyTorch program, by its Python functions"]


def main():
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory) / "made.svg"
        flame_graph_svg.write_picture(sys.argv[1], CAPTURE, made, OPTIONS)
        text = made.read_text()
    if "XPU_UPDATE_GOLDEN" in os.environ:
        PICTURE.write_text(text)
    if text != PICTURE.read_text():
        print(f"{PICTURE} is not the picture that is made today: XPU_UPDATE_GOLDEN=1")
        return 1
    assert text.count("<rect") > 100, "an empty picture"
    return 0


if __name__ == "__main__":
    sys.exit(main())
