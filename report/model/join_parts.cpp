#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "format/base/text.h"
#include "format/events.h"
#include "report/model/load.h"

namespace xpu {
namespace {

// The texts and stacks of all parts, each once.
class JoinedTables : public CaptureTables {
 public:
  JoinedTables() : texts_{"", "[lost]"}, nodes_(kLostStack.value + 1) {}

  std::string_view String(StringId id) const override {
    return id.value < texts_.size() ? texts_[id.value] : texts_[kLostString.value];
  }
  StackNode Node(StackId id) const override {
    return id.value < nodes_.size() ? nodes_[id.value] : StackNode();
  }
  bool IsLost(StackId id) const override { return id == kLostStack || id.value >= nodes_.size(); }

  StringId Add(std::string_view text) {
    const auto known = strings_.find(text);
    if (known != strings_.end()) return known->second;
    const StringId id{static_cast<uint32_t>(texts_.size())};
    strings_.emplace(texts_.emplace_back(text), id);
    return id;
  }
  StackId Add(const StackNode& node) {
    const StackId id{static_cast<uint32_t>(nodes_.size())};
    const auto [at, is_new] = stacks_.try_emplace(node, id);
    if (is_new) nodes_.push_back(node);
    return at->second;
  }

 private:
  struct Hash {
    size_t operator()(const StackNode& node) const {
      uint64_t hash = node.frame.address * 0x9e3779b97f4a7c15;
      hash ^= uint64_t{node.caller.value} << 8 | static_cast<uint8_t>(node.frame.kind);
      hash *= 0xff51afd7ed558ccd;
      return hash ^ hash >> 32;
    }
  };
  struct Equal {
    bool operator()(const StackNode& a, const StackNode& b) const {
      return a.caller == b.caller && a.frame == b.frame;
    }
  };

  std::deque<std::string> texts_;  // in place: strings_ refers to them
  std::vector<StackNode> nodes_;
  std::unordered_map<std::string_view, StringId> strings_;
  std::unordered_map<StackNode, StackId, Hash, Equal> stacks_;
};

// The ids of one part, as those of all.
class Translation {
 public:
  Translation(const CaptureTables& from, JoinedTables& to) : from_(from), to_(to) {}

  StringId Of(StringId id) {
    if (!id || id == kLostString) return id;
    StringId& known = Place(strings_, id.value);
    if (!known) known = to_.Add(from_.String(id));
    return known;
  }
  StackId Of(StackId id) {
    // From the innermost frame to one that is known, then back.
    chain_.clear();
    while (id && !from_.IsLost(id) && !Place(stacks_, id.value)) {
      chain_.push_back(id);
      id = from_.Node(id).caller;
    }
    StackId caller = !id ? id : from_.IsLost(id) ? kLostStack : stacks_[id.value];
    for (; !chain_.empty(); chain_.pop_back()) {
      caller = to_.Add(StackNode{caller, from_.Node(chain_.back()).frame});
      stacks_[chain_.back().value] = caller;
    }
    return caller;
  }
  template <typename Event>
  void Apply(Event& event) {
    VisitFields(event, [this](const char*, auto& field) {
      using Field = std::decay_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, StringId> || std::is_same_v<Field, StackId>) {
        field = Of(field);
      }
    });
  }

 private:
  template <typename IdType>
  static IdType& Place(std::vector<IdType>& known, uint32_t place) {
    if (place >= known.size()) known.resize(std::max<size_t>(place + 1, known.size() * 2));
    return known[place];
  }

  const CaptureTables& from_;
  JoinedTables& to_;
  std::vector<StringId> strings_;
  std::vector<StackId> stacks_;
  std::vector<StackId> chain_;
};

// Not inlined: some hundred fields do this.
[[gnu::noinline]] void AppendNumber(std::string& content, uint64_t number) {
  AppendFormat(content, "{},", number);
}

// Everything that an event says. Not inlined, as there is one for each kind of event.
template <typename Event>
[[gnu::noinline]] std::string ContentOf(const Event& event, const CaptureTables& tables) {
  std::string content;
  VisitFields(event, [&](const char*, const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, StringId>) {
      const std::string_view text = tables.String(field);
      if (text.size() <= Model::kLongestText) {
        content += text;
      } else {  // equal texts of joined parts have one id
        AppendNumber(content, field.value);
      }
      content += '\0';
    } else if constexpr (requires { field.value; }) {
      AppendNumber(content, field.value);
    } else {
      AppendNumber(content, static_cast<uint64_t>(field));
    }
  });
  return content;
}

// These say by themselves that they are restated, and passes know what that means.
template <typename Event>
constexpr bool kIsIdempotent =
    std::is_same_v<Event, ProcessEvent> || std::is_same_v<Event, Mapping>;

// Which restated events are new: a set of their contents, whatever kind they are of.
class RestatedContents {
 public:
  // False: an equal one was added before.
  [[gnu::noinline]] bool Add(std::string content) { return all_.insert(std::move(content)).second; }
  [[gnu::noinline]] void MarkKnown(std::string content) {
    if (all_.contains(content)) known_.insert(std::move(content));
  }
  [[gnu::noinline]] bool IsKnown(const std::string& content) const {
    return known_.contains(content);
  }

 private:
  std::unordered_set<std::string> all_;
  std::unordered_set<std::string> known_;
};

// Puts in front of `events` what of `restated` they do not have.
template <typename Event>
[[gnu::noinline]] void AddUnknown(const CaptureTables& tables, EventList<Event>& list,
                                  EventList<Event>& more) {
  std::vector<Event>& events = list.rows();
  std::vector<Event>& restated = more.rows();
  if (restated.empty()) return;
  if constexpr (std::is_same_v<Event, RecordingInfo>) {
    if (events.empty()) events.push_back(restated.front());
    return;
  }
  if constexpr (!kIsIdempotent<Event>) {
    RestatedContents contents;
    std::erase_if(restated,
                  [&](const Event& event) { return !contents.Add(ContentOf(event, tables)); });
    for (const Event& event : events) contents.MarkKnown(ContentOf(event, tables));
    std::erase_if(restated,
                  [&](const Event& event) { return contents.IsKnown(ContentOf(event, tables)); });
  }
  events.insert(events.begin(), restated.begin(), restated.end());
}

// No recorder restates what is kept in these.
template <typename List>
void AddUnknown(const CaptureTables&, List& events, List& restated) {
  for (auto event : restated) events.push_back(event);
}

// Events that every part defines again when they occur there.
template <typename Event>
void DropRepeated(const CaptureTables& tables, EventList<Event>& events) {
  RestatedContents contents;
  std::erase_if(events.rows(),
                [&](const Event& event) { return !contents.Add(ContentOf(event, tables)); });
}

void AddRestated(Model& model, LoadedEvents& restated) {
  VisitBoth(model.events, restated,
            [&](auto& events, auto& list) { AddUnknown(*model.tables, events, list); });
  DropRepeated(*model.tables, model.events.python_codes);
}

const RecordingInfo* InfoOf(const LoadedPart& part) {
  for (const LoadedEvents* events : {&part.model.events, &part.restated}) {
    if (!events->recording_info.empty()) return &events->recording_info.front();
  }
  return nullptr;
}

uint32_t PartOf(const LoadedPart& part) {
  const RecordingInfo* info = InfoOf(part);
  return info == nullptr ? 0 : info->part;
}

void NoteParts(const LoadedPart& part, Model& model) {
  const uint32_t number = PartOf(part);
  if (model.parts.first == 0) model.parts.first = number;
  if (model.parts.last != 0) model.parts.missing += number - model.parts.last - 1;
  model.parts.last = number;
  const auto& ends = part.model.events.recording_end;
  model.parts.is_continued = !ends.empty() && ends.back().is_continued;
}

// The parts in order.
Model Join(std::vector<LoadedPart> parts) {
  Model joined;
  auto tables = std::make_unique<JoinedTables>();
  LoadedEvents restated;
  for (size_t i = 0; i < parts.size(); ++i) {
    LoadedPart& part = parts[i];
    NoteParts(part, joined);
    // Only the last end is the recording's. Without it a part was never completed.
    joined.events.recording_end.rows().clear();
    if (i + 1 < parts.size() && part.model.events.recording_end.empty()) {
      joined.problems.cut = true;
    }
    Translation translation(*part.model.tables, *tables);
    const auto move = [&](auto& all, auto& list) {
      for (auto event : list) {
        translation.Apply(event);
        all.push_back(event);
      }
      list = {};
    };
    VisitBoth(joined.events, part.model.events, move);
    VisitBoth(restated, part.restated, move);
    AddProblems(joined.problems, part.model.problems);
    joined.file_bytes += part.model.file_bytes;
    part.model.tables.reset();
  }
  joined.path = Format("{} to {} ({} parts)", parts.front().model.path, parts.back().model.path,
                       parts.size());
  joined.tables = std::move(tables);
  AddRestated(joined, restated);
  DropRepeated(*joined.tables, joined.events.kernel_symbols);
  DropRepeated(*joined.tables, joined.events.generated_symbols);
  return joined;
}

}  // namespace

void AddProblems(ReadProblems& all, const ReadProblems& more) {
  all.blocks_read += more.blocks_read;
  all.blocks_damaged += more.blocks_damaged;
  all.events_lost += more.events_lost;
  all.bytes_skipped += more.bytes_skipped;
  all.header_damaged = all.header_damaged || more.header_damaged;
  all.cut = all.cut || more.cut;
  all.captures_follow = all.captures_follow || more.captures_follow;
  all.unknown_events += more.unknown_events;
  all.references_lost += more.references_lost;
}

Model WithRestated(LoadedPart part) {
  if (PartOf(part) != 0) NoteParts(part, part.model);
  AddRestated(part.model, part.restated);
  return std::move(part.model);
}

Result<std::vector<Model>> JoinParts(std::vector<LoadedPart> captures) {
  // In the order in which the first one of each comes.
  std::vector<std::vector<LoadedPart>> recordings;
  std::map<uint64_t, size_t> places;
  for (LoadedPart& capture : captures) {
    const RecordingInfo* info = InfoOf(capture);
    const bool is_part = info != nullptr && info->part != 0 && info->recording != 0;
    size_t place = recordings.size();
    if (is_part) place = places.try_emplace(info->recording, place).first->second;
    if (place == recordings.size()) recordings.emplace_back();
    recordings[place].push_back(std::move(capture));
  }
  std::vector<Model> joined;
  for (std::vector<LoadedPart>& parts : recordings) {
    std::stable_sort(parts.begin(), parts.end(), [](const LoadedPart& a, const LoadedPart& b) {
      return PartOf(a) < PartOf(b);
    });
    const auto twice = std::adjacent_find(
        parts.begin(), parts.end(),
        [](const LoadedPart& a, const LoadedPart& b) { return PartOf(a) == PartOf(b); });
    if (twice != parts.end()) {
      return Error{ErrorKind::kUsage,
                   Format("{} and {} are the same part of one recording", twice->model.path,
                          std::next(twice)->model.path),
                   "name each capture only once"};
    }
    joined.push_back(parts.size() == 1 ? WithRestated(std::move(parts.front()))
                                       : Join(std::move(parts)));
  }
  return joined;
}

}  // namespace xpu
