"""Adding a record of CUPTI from end to end, as CONTRIBUTING.md says: in a copy of the tree, which is
built, records the simulated device and reports. xpu-report as it is skips what is new."""

import json
import os
import pathlib
import shutil
import subprocess

import xpu_testing
from xpu_testing import Workspace, expect, expect_in, main, require_recording

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / "tests/new_record_kind"

# File -> (text in it, what stands there then).
PRODUCT = {
    "format/capture.capnp": [
        ("  sourceTexts @45 :SourceText;\n",
         "  sourceTexts @45 :SourceText;\n  cudaEvents @46 :CudaEvent;\n"),
        ("struct JitOperation {\n", """struct CudaEvent {
  # An event was reached in a stream.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  timeNs @3 :Column $u64 $time(cupti);
  streamId @4 :Column $u32;
  eventId @5 :Column $u32;  # that CUPTI gave it
  tail @6 :Column $bytes;
}

struct JitOperation {
"""),
    ],
    "cupti_inject/cupti_records.inc": [
        ("\n#undef RECORD\n", """
RECORD(CudaEvent, CUpti_ActivityCudaEvent2)
  VERSION(CudaEvent, CUpti_ActivityCudaEvent, 24, 0)
  VERSION(CudaEvent, CUpti_ActivityCudaEvent2, 56, 12080)
  FIELD(uint32_t, correlation_id, 4, correlationId, 0)
  FIELD(uint32_t, context_id, 8, contextId, 0)
  FIELD(uint32_t, stream_id, 12, streamId, 0)
  FIELD(uint32_t, event_id, 16, eventId, 0)
  PADDING(20, 4)
  FIELD(uint32_t, device_id, 24, deviceId, 56)
  PADDING(28, 12)
  FIELD(uint64_t, time_ns, 40, deviceTimestamp, 56)
  FIELD(uint64_t, event_sync_id, 48, cudaEventSyncId, 56)
END(CudaEvent, CUpti_ActivityCudaEvent2)
KIND(kKindCudaEvent, 36, CUPTI_ACTIVITY_KIND_CUDA_EVENT, CudaEvent, CudaEvent)

#undef RECORD
"""),
    ],
    "cupti_inject/activity_kinds.h": [
        ('{cupti::kKindJit, "JIT"},', '{cupti::kKindJit, "JIT"}, {cupti::kKindCudaEvent, "event"},'),
    ],
    "report/analysis/filter.cpp": [
        ("    KeepIf(events.jit_operations, shown.jit_operations, is_wanted_of_driver);\n",
         """    KeepIf(events.jit_operations, shown.jit_operations, is_wanted_of_driver);
    KeepIf(events.cuda_events, shown.cuda_events, [&](const CudaEvent& event) {
      return is_wanted_of_driver(Overhead{
          .instance = event.instance, .start_ns = event.time_ns, .end_ns = event.time_ns});
    });
"""),
    ],
    "report/views/timeline/timeline.cpp": [
        ("  const std::optional<uint64_t> cut_ns = WriteSlices();\n",
         """  for (const CudaEvent& event :
       Selected(analysis_.model.events.cuda_events, analysis_.shown.events.cuda_events)) {
    sink_.Mark(Format("event {}", event.event_id),
                 analysis_.clocks.Of(event.instance).ToMonotonic(event.time_ns));
  }
  const std::optional<uint64_t> cut_ns = WriteSlices();
"""),
    ],
}
SIMULATED_DEVICE = {
    "tests/fake_cuda/hooks.h": [("  kStream = 37,\n", "  kCudaEvent = 36,\n  kStream = 37,\n")],
    "tests/fake_cuda/cupti/records.cpp": [
        ("Record MakeJit(", """Record MakeCudaEvent(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  layout.correlationId = activity.correlation_id;
  layout.streamId = activity.stream_id;
  layout.eventId = activity.event_id;
  return Make(layout, layout.kind);
}

Record MakeJit("""),
        ("    case ActivityKind::kJit:\n", """    case ActivityKind::kCudaEvent:
      return MakeCudaEvent(activity);
    case ActivityKind::kJit:
"""),
    ],
    "tests/fake_cuda/driver/api_stream_calls.cpp": [
        ("  if (stream->capture == nullptr) event->time_ns = std::max(NowNs(), TailOf(stream));\n",
         """  if (stream->capture == nullptr) event->time_ns = std::max(NowNs(), TailOf(stream));
  Activity reached{ActivityKind::kCudaEvent};
  reached.correlation_id = scope.correlation_id();
  reached.stream_id = stream->id;
  reached.event_id = event->id;
  reached.start_ns = reached.end_ns = event->time_ns;
  Emit(reached);
"""),
    ],
}
TARGETS = ["xpu-record", "xpu-report", "xpu_inject", "xpu_capture_manual", "fake_cupti",
           "transformer"]


def copy_of_the_tree(place):
    """What the build reads, with the edits. A file of the last copy that is the same stays, so that
    only what has changed since is compiled."""
    edits = {place / name: changes for group in (PRODUCT, SIMULATED_DEVICE)
             for name, changes in group.items()}
    wanted = set()
    for path in ROOT.iterdir():
        if path.name.startswith(".") or path.name == "build":
            continue
        wanted |= {file for file in [path, *path.rglob("*")]
                   if file.is_file() and "__pycache__" not in file.parts}
    wanted = {place / path.relative_to(ROOT): path for path in wanted}
    for path in [path for path in place.rglob("*") if path.is_file() and path not in wanted]:
        path.unlink()
    for path, original in wanted.items():
        content = original.read_bytes()
        for before, after in edits.get(path, ()):
            expect(f"{path.name}: {before!r} occurs", content.count(before.encode()), 1)
            content = content.replace(before.encode(), after.encode())
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(original.stat().st_mode & 0o777)


def build(source, place):
    options = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    if shutil.which("clang++"):
        # Without optimization it takes three fifths of g++'s time.
        options += ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
    for command in (
            ["cmake", "-S", source, "-B", place, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
             "-DCMAKE_CXX_FLAGS=-O0", *options],
            ["cmake", "--build", place, "--target", *TARGETS]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        expect(f"{command[1]}: {result.stdout[-3000:]}{result.stderr[-3000:]}",
               result.returncode, 0)


def report(program, *arguments):
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    expect(f"xpu-report {arguments}: {result.stderr}", result.returncode, 0)
    return result.stdout


def marks(program, capture, *filters):
    trace = json.loads(report(program, capture, "--chrome-trace=-", *filters))
    return [e for e in trace["traceEvents"] if e.get("ph") == "i" and e["name"][:6] == "event "]


def test_a_new_record_of_cupti():
    require_recording()
    with Workspace() as work:
        source, place = COPY / "source", COPY / "build"
        copy_of_the_tree(source)
        build(source, place)
        expect("files", (len(PRODUCT), len(SIMULATED_DEVICE)), (5, 3))

        capture = work.file("new.xpu")
        requests = 3
        result = subprocess.run(
            [place / "record/xpu-record", "-o", capture, "--", place / "tests/workloads/transformer",
             "--requests", str(requests), "--event-time"],
            capture_output=True, text=True, check=False)
        expect(f"status ({result.stderr})", result.returncode, 0)

        new_report = place / "report/xpu-report"
        lines = [line for line in report(new_report, capture, "--dump").splitlines()
                 if line.startswith("cuda_event ")]
        expect("events in the dump", len(lines), 2 * requests)
        fields = [field.split("=")[0] for field in lines[0].split()[1:]]
        expect("fields", fields, ["instance", "record_size_bytes", "time_ns", "stream_id",
                                  "event_id", "tail"])
        expect_in("size", "record_size_bytes=56 ", lines[0])

        expect("marks", len(marks(new_report, capture)), 2 * requests)
        expect("marks of another process", marks(new_report, capture, "--pid", "1"), [])

        manual = (place / "man/xpu-capture.5").read_text(encoding="utf-8")
        expect_in("manual", ".SS cuda_event\nAn event was reached in a stream.\n", manual)

        old_report = xpu_testing.find("report/xpu-report")
        summary = report(old_report, capture)
        expect_in("what is skipped", "newer", summary)
        expect("known records", [line for line in report(old_report, capture, "--dump").splitlines()
                                 if line.startswith("kernel ")],
               [line for line in report(new_report, capture, "--dump").splitlines()
                if line.startswith("kernel ")])


if __name__ == "__main__":
    main(globals())
