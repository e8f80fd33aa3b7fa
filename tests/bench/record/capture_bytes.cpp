// Where the bytes of a capture are: for each kind of event and each of its fields, what the stored
// blocks would be smaller without it.
//   capture_bytes FILE [--fields]
//
// Blocks are encoded again as a writer does. Of a field: with 0 in all of its values. What several
// share, by looking alike to zstd, is counted to none, so the parts add up to less than the whole.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "format/base/file.h"
#include "format/base/text.h"
#include "format/block.h"
#include "format/message.h"

namespace xpu {
namespace {

struct Part {
  uint64_t events = 0;
  int64_t bytes = 0;
};

class Measure {
 public:
  explicit Measure(bool fields) : fields_(fields) {}

  void Add(BlockContent content) {
    const int64_t all = Size(content);
    bytes_ += static_cast<uint64_t>(all);
    AddDefinitions(content, all);
    VisitLists(content.events, [&]<typename Event>(const char* name, std::vector<Event>& list) {
      if (list.empty()) return;
      if (fields_) AddFields(name, list, content, all);
      std::vector<Event> kept;
      kept.swap(list);
      Note(name, kept.size(), all - Size(content));
      kept.swap(list);
    });
  }

  void Print() const {
    std::printf("%lu bytes in blocks\n", static_cast<unsigned long>(bytes_));
    for (const auto& [name, part] : parts_) {
      std::printf("%-40s %10lu %10ld bytes %8.3f each\n", name.c_str(),
                  static_cast<unsigned long>(part.events), static_cast<long>(part.bytes),
                  static_cast<double>(part.bytes) / static_cast<double>(part.events));
    }
  }

 private:
  int64_t Size(const BlockContent& content) {
    const std::vector<uint64_t> message = EncodeMessage(content);
    return static_cast<int64_t>(encoder_.Encode({}, std::as_bytes(std::span(message))).size());
  }

  void Note(const std::string& name, size_t events, int64_t bytes) {
    Part& part = parts_[name];
    part.events += events;
    part.bytes += bytes;
  }

  void AddDefinitions(BlockContent& content, int64_t all) {
    if (!content.stack_nodes.empty()) {
      std::vector<StackNode> nodes;
      nodes.swap(content.stack_nodes);
      Note("(stack nodes)", nodes.size(), all - Size(content));
      nodes.swap(content.stack_nodes);
    }
    if (content.string_sizes.empty()) return;
    std::vector<uint32_t> sizes;
    std::string bytes;
    sizes.swap(content.string_sizes);
    bytes.swap(content.string_bytes);
    Note("(strings)", sizes.size(), all - Size(content));
    sizes.swap(content.string_sizes);
    bytes.swap(content.string_bytes);
  }

  template <typename Event>
  void AddFields(const std::string& list_name, std::vector<Event>& list,
                 const BlockContent& content, int64_t all) {
    for (size_t field = 0; field < FieldCount<Event>(); ++field) {
      const std::vector<Event> kept = list;
      std::string name;
      for (Event& event : list) {
        size_t at = 0;
        VisitFields(event, [&](const char* field_name, auto& value) {
          if (at++ != field) return;
          name = field_name;
          value = std::remove_reference_t<decltype(value)>{};
        });
      }
      Note(list_name + "." + name, list.size(), all - Size(content));
      list = kept;
    }
  }

  const bool fields_;
  BlockEncoder encoder_{3};
  uint64_t bytes_ = 0;
  std::map<std::string, Part> parts_;
};

int Run(const char* path, bool fields) {
  auto file = FileBytes::Open(path);
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", file.error().ToString().c_str());
    return 1;
  }
  const std::span<const std::byte> bytes = file->bytes();
  Measure measure(fields);
  BlockDecoder decoder;
  for (size_t at = FindBlockMagic(bytes, 0); at < bytes.size();) {
    const auto header = ParseBlockHeader(bytes.subspan(at));
    if (!header || header->stored_bytes > bytes.size() - at - kBlockHeaderBytes) break;
    const auto payload = bytes.subspan(at + kBlockHeaderBytes, header->stored_bytes);
    const auto message = decoder.Decode(*header, payload);
    auto content = message ? DecodeMessage(*message, header->events) : std::nullopt;
    if (!content) break;
    measure.Add(*std::move(content));
    at = FindBlockMagic(bytes, at + kBlockHeaderBytes + header->stored_bytes);
  }
  measure.Print();
  return 0;
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: capture_bytes FILE [--fields]\n");
    return 2;
  }
  return xpu::Run(argv[1], argc > 2 && std::strcmp(argv[2], "--fields") == 0);
}
