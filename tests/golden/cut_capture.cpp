// cut_capture CAPTURE PARTS OUTPUT: writes the events of a capture again, as xpu-record
// --rotate-size would have: into OUTPUT.0001.xpu to OUTPUT.<PARTS>.xpu, cut after equal numbers of
// events. With 1 part it is one file.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/block_output.h"
#include "format/events.h"
#include "format/reader.h"
#include "record/output/output_parts.h"
#include "record/process/process_table.h"
#include "record/sink/event_sink.h"

namespace {

using namespace xpu;

std::unique_ptr<BlockOutput> OpenPart(const std::string& output, uint32_t part) {
  const std::string path = PartPath(output + ".xpu", part);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  XPU_CHECK(static_cast<bool>(fd));
  return std::make_unique<FdOutput>(std::move(fd), path);
}

uint64_t CountEvents(const std::string& path) {
  uint64_t count = 0;
  auto reader = CaptureReader::Open(path);
  XPU_CHECK(reader.ok());
  while (const auto batch = reader->Next()) {
    VisitLists(*batch, [&](const char*, const auto& list) { count += list.size(); });
  }
  return count;
}

class Cutter {
 public:
  Cutter(CaptureReader reader, CaptureWriter writer, std::string output, uint64_t per_part)
      : reader_(std::move(reader)),
        sink_(std::move(writer)),
        output_(std::move(output)),
        per_part_(per_part) {
    sink_.AddObserver(&processes_);
    sink_.SetLiveState(&processes_);
  }

  void Run() {
    while (auto batch = reader_.Next()) {
      VisitLists(*batch, [this](const char*, const auto& list) {
        for (const auto& event : list) Take(event);
      });
    }
    sink_.Close(end_);
  }

 private:
  template <typename Event>
  void Take(Event event) {
    if (++taken_ % per_part_ == 0) BeginPart();
    if constexpr (std::is_same_v<Event, RecordingEnd>) {
      end_ = event;
    } else if constexpr (std::is_same_v<Event, PythonCode>) {
      XPU_CHECK(sink_.Define({.name = std::string(reader_.String(event.name)),
                              .path = std::string(reader_.String(event.path)),
                              .first_line = event.first_line,
                              .line_table = std::string(reader_.String(event.line_table)),
                              .version = event.version}) == event.code);
    } else {
      if constexpr (std::is_same_v<Event, RecordingInfo>) {
        event.recording = 4711;
        event.part = 1;
      }
      // Stacks of Python first: they may write.
      if constexpr (requires { event.python_stack; }) Intern(event.python_stack);
      VisitFields(event, [this](std::string_view name, auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, StringId>) {
          if (field) field = sink_.Intern(std::string(reader_.String(field)));
        } else if constexpr (std::is_same_v<Field, StackId>) {
          if (name != "python_stack") Intern(field);
        }
      });
      sink_.Write(event);
    }
  }
  void Intern(StackId& id) {
    if (id) id = sink_.Intern(reader_.Stack(id));
  }
  void BeginPart() {
    ++part_;
    auto ended = sink_.BeginPart(OpenPart(output_, part_), part_);
    XPU_CHECK(ended.ok());
    RecordingEnd end;
    end.is_continued = true;
    XPU_CHECK(ended->Write(end).ok() && ended->Close().ok());
  }

  CaptureReader reader_;
  ProcessTable processes_;
  EventSink sink_;
  std::string output_;
  uint64_t per_part_;
  uint64_t taken_ = 0;
  uint32_t part_ = 1;
  RecordingEnd end_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto parts = static_cast<uint64_t>(std::atoi(argv[2]));
  auto reader = CaptureReader::Open(argv[1]);
  if (!reader.ok() || parts == 0) return 1;
  auto writer = CaptureWriter::Create(OpenPart(argv[3], 1));
  XPU_CHECK(writer.ok());
  Cutter(*std::move(reader), *std::move(writer), argv[3], CountEvents(argv[1]) / parts + 1).Run();
  return 0;
}
