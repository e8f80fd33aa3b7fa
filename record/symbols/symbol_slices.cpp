#include "record/symbols/symbol_slices.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/text.h"
#include "format/slice_parts.h"
#include "record/base/background_threads.h"
#include "record/base/remote_mounts.h"
#include "record/process/target_file.h"
#include "record/process/unwind_file.h"
#include "record/symbols/generated_code.h"
#include "record/symbols/hit_files.h"
#include "symbolize/elf/symbol_slice.h"
#include "symbolize/file_symbols.h"
#include "symbolize/slice_maker.h"

namespace xpu {
namespace {

constexpr unsigned kMostThreads = 8;
constexpr char kDebugDirectory[] = "/usr/lib/debug";

Result<MadeSlice> SliceOfVdso(const std::vector<uint64_t>& offsets) {
  XPU_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(VdsoImage(), kVdso));
  const FileSymbols symbols(image);
  MadeSlice slice;
  slice.bytes = WriteSymbolSlice(image, symbols.table(), image.LinkAddressesOf(offsets));
  return slice;
}

Result<MadeSlice> SliceOf(const HitFile& file, SymbolDetail detail, bool wants_source_lines) {
  if (file.path == kVdso) return SliceOfVdso(file.offsets);
  RegularFile opened;
  if (file.fd) {
    XPU_RETURN_IF_ERROR(CheckMountAnswers(Format("/proc/self/fd/{}", file.fd.get())));
  } else {
    XPU_ASSIGN_OR_RETURN(opened, OpenTargetFile(file.path));
    if (file.build_id.empty() && !MayBeMapped(opened.info, file.path, file.identity)) {
      return Error{ErrorKind::kNotFound, Format("{}: is not the recorded file", file.path), {}};
    }
  }
  SliceOrder order;
  order.path = Format("/proc/self/fd/{}", file.fd ? file.fd.get() : opened.fd.get());
  order.name = file.path;
  order.build_id = file.build_id;
  order.debug_directory = kDebugDirectory;
  order.detail = detail == SymbolDetail::kLines ? SliceDetail::kLines : SliceDetail::kNames;
  order.wants_source_lines = wants_source_lines;
  order.reading = DebugReading::kConfined;
  return MakeSymbolSlice(order, file.offsets);
}

// Runs work(0) to work(count - 1), several at once.
void InParallel(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  BackgroundThreads others;
  const size_t threads =
      std::min<size_t>({count, std::thread::hardware_concurrency(), kMostThreads});
  for (size_t i = 1; i < threads; ++i) others.Start(run);
  run();
}

void WriteSlice(const HitFile& file, SymbolDetail detail, std::string_view bytes, EventSink& sink) {
  // The sink records the failure.
  (void)WriteSliceParts(
      {file.path, file.build_id, detail, bytes},
      [&](std::string_view text) { return sink.Intern(text); },
      [&](const SymbolSlice& part) {
        sink.Write(part);
        return Ok();
      });
}

// Data files can be mapped as executable too (a pack of git, a database), but contain no code.
bool IsNoElfFile(const Error& error) { return error.kind == ErrorKind::kInvalid; }

}  // namespace

void WriteSymbols(const OccurringCode& code, SymbolDetail detail, const SymbolLimits& limits,
                  EventSink& sink, SourceTexts* sources) {
  const std::vector<HitFile>& files = code.files;
  std::vector<Result<MadeSlice>> slices(files.size(), MadeSlice());
  InParallel(files.size(),
             [&](size_t i) { slices[i] = SliceOf(files[i], detail, sources != nullptr); });
  uint64_t left = limits.slice_bytes;
  for (size_t i = 0; i < files.size(); ++i) {
    if (slices[i].ok() && slices[i]->bytes.size() > left) {
      sink.losses().Add(LossKind::kSymbolsNotStored, 1, 0, {},
                        Format("{}: no room within --max-size", files[i].path));
    } else if (slices[i].ok()) {
      left -= slices[i]->bytes.size();
      WriteSlice(files[i], detail, slices[i]->bytes, sink);
    } else if (!IsNoElfFile(slices[i].error()) &&
               !(files[i].build_id.empty() && MayBeGeneratedCode(files[i].path))) {
      sink.losses().Add(LossKind::kSymbolsNotStored, 1, 0, {}, slices[i].error().message);
    }
    if (slices[i].ok() && !slices[i]->lines_failure.empty()) {
      sink.losses().Add(LossKind::kLinesNotStored, 1, 0, {}, slices[i]->lines_failure);
    }
    if (sources != nullptr && slices[i].ok()) {
      sources->Add(slices[i]->source_lines, files[i].namer);
    }
  }
  WriteGeneratedSymbols(code.generated, limits.generated_bytes, sink);
}

}  // namespace xpu
