// Very many events in little memory. Of a million kernels, a few hundred differ in more than their
// times and numbers: the fields that differ from event to event are kept for each, the others once,
// in a template, for all that share them. Events without such likeness need a little more than in a
// vector.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/base/ids.h"
#include "format/events.h"
#include "report/base/flat_map.h"
#include "report/base/packed_columns.h"

namespace xpu {

inline const uint64_t kHashSeed = uint64_t{std::random_device()()} << 32 | std::random_device()();

// The numbers that fields of events are kept as.
template <typename Field>
uint64_t ToColumn(const Field& field) {
  if constexpr (requires { field.value; }) {
    return field.value;
  } else {
    return static_cast<uint64_t>(field);
  }
}
template <typename Field>
Field FromColumn(uint64_t number) {
  if constexpr (requires(Field field) { field.value; }) {
    return Field{static_cast<typename Field::Value>(number)};
  } else {
    return static_cast<Field>(number);
  }
}

// Whether two pointers to members are one.
template <auto kMember, auto kOther>
constexpr bool IsSameMember() {
  if constexpr (std::is_same_v<decltype(kMember), decltype(kOther)>) {
    return kMember == kOther;
  } else {
    return false;
  }
}

// Goes through a list whose events are made when they are asked for.
template <typename List>
class ValueIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = decltype(std::declval<const List&>()[0]);
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = value_type;

  ValueIterator(const List& list, size_t index) : list_(&list), index_(index) {}
  [[gnu::always_inline]] value_type operator*() const { return (*list_)[index_]; }
  ValueIterator& operator++() {
    ++index_;
    return *this;
  }
  friend bool operator==(const ValueIterator&, const ValueIterator&) = default;

 private:
  const List* list_;
  size_t index_;
};

// Places of the numbers in ascending order; equal ones keep theirs. One function for all lists.
std::vector<uint32_t> PlacesInOrder(const std::vector<uint64_t>& numbers);

// All events of such a list, to be changed and put into another one.
template <typename List>
auto Unpacked(const List& list) {
  std::vector<typename List::Iterator::value_type> events;
  events.reserve(list.size());
  for (const auto& event : list) events.push_back(event);
  return events;
}

// `kOwnFields`: those that differ from event to event, as in &Kernel::start_ns.
template <typename Event, auto... kOwnFields>
class CompactList {
 public:
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.size() == 0; }

  // Places are 32 bits: a file can claim more events than that, and fails as if memory were full.
  void push_back(const Event& event) {
    if (size() >= kMostRows) throw std::bad_alloc();
    if (!IsExpected(event)) Find(event);
    rows_.push_back({ToColumn(event.*kOwnFields)..., last_});
  }

  // Returns a value: there is no such event in memory. Inlined, no more of it is read than is used.
  [[gnu::always_inline]] Event operator[](size_t index) const {
    Event event = templates_[rows_.Get(kTemplateColumn, index)];
    size_t column = 0;
    (SetField(event.*kOwnFields, rows_.Get(column++, index)), ...);
    if constexpr (requires { event.track; }) {
      if (index < owners_.size()) {
        SetField(event.process, owners_.Get(0, index));
        SetField(event.track, owners_.Get(1, index));
      }
    }
    return event;
  }

  // One field, without the others: Get<&Kernel::name>(index).
  template <auto kField>
  [[gnu::always_inline]] auto Get(size_t index) const {
    constexpr size_t kColumn = ColumnOf<kField>();
    if constexpr (kColumn == kTemplateColumn) {
      return templates_[rows_.Get(kTemplateColumn, index)].*kField;
    } else {
      return FromColumn<std::remove_cvref_t<decltype(std::declval<Event>().*kField)>>(
          rows_.Get(kColumn, index));
    }
  }

  // Sorts by an own field; equal ones keep their order.
  template <auto kField>
  void SortBy() {
    const auto is_before = [this](size_t a, size_t b) { return Get<kField>(a) < Get<kField>(b); };
    size_t ordered = 1;
    while (ordered < size() && !is_before(ordered, ordered - 1)) ++ordered;
    if (ordered >= size()) return;
    std::vector<uint64_t> numbers;
    numbers.reserve(size());
    for (size_t i = 0; i < size(); ++i) numbers.push_back(Get<kField>(i));
    Rows sorted;
    for (const uint32_t place : PlacesInOrder(numbers)) sorted.push_back(rows_[place]);
    rows_ = std::move(sorted);
  }

  // The fields besides the own ones: one event for all that share them.
  const std::vector<Event>& templates() const { return templates_; }
  // Calls edit(event) for each of these.
  template <typename Edit>
  void EditTemplates(Edit&& edit) {
    for (Event& common : templates_) edit(common);
  }

  // Finds the track of each event and its process, when all are there and in order. `kPid`, `kTid`
  // and `kTime`: the fields that say it.
  template <auto kPid, auto kTid, auto kTime, typename Tracks>
  void FindTracks(const Tracks& tracks) {
    for (size_t i = 0; i < size(); ++i) {
      const auto track = tracks.At(Get<kPid>(i), Get<kTid>(i), Get<kTime>(i));
      owners_.push_back({tracks[track].process.value, track.value});
    }
  }

  using Iterator = ValueIterator<CompactList>;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  using TemplateId = Id<struct TemplateTag, uint32_t>;
  using Numbers = std::array<uint64_t, FieldCount<Event>()>;

  static constexpr size_t kMostRows = std::numeric_limits<uint32_t>::max() - 1;
  static constexpr size_t kTemplateColumn = sizeof...(kOwnFields);  // place in templates_
  using Rows = PackedColumns<kTemplateColumn + 1>;

  template <auto kField>
  static constexpr size_t ColumnOf() {
    size_t column = 0;
    static_cast<void>(((IsSameMember<kField, kOwnFields>() || (++column, false)) || ...));
    return column;
  }
  template <typename Field>
  static void SetField(Field& field, uint64_t number) {
    field = FromColumn<Field>(number);
  }

  // Inlined, `count` is known at each field; else its memory would be read and written for each.
  [[gnu::flatten]] static Numbers NumbersOf(const Event& event) {
    Numbers numbers;
    size_t count = 0;
    VisitFields(event, [&](const char*, const auto& field) { numbers[count++] = ToColumn(field); });
    return numbers;
  }

  // Four sums at a time: one alone would wait for each multiplication. No file can be made to have
  // many events of one hash, for it does not know where the sums begin.
  static uint64_t HashOf(const Numbers& numbers) {
    constexpr uint64_t kMix = 0x9e3779b97f4a7c15ull;
    std::array<uint64_t, 4> sums;
    sums.fill(kHashSeed);
    for (size_t i = 0; i < numbers.size(); ++i) {
      uint64_t& sum = sums[i % sums.size()];
      sum = (sum ^ numbers[i]) * kMix;
      sum ^= sum >> 32;
    }
    uint64_t hash = 0;
    for (const uint64_t sum : sums) hash = (hash ^ sum) * kMix;
    return hash;
  }

  template <typename Field>
  static bool IsOwn(const Event& event, const Field& field) {
    const void* place = &field;
    return ((place == &(event.*kOwnFields)) || ...);
  }

  // To compare two events word by word takes a third of what field by field does.
  static constexpr size_t kWords = sizeof(Event) / sizeof(uint64_t);
  static_assert(sizeof(Event) % sizeof(uint64_t) == 0);
  using Words = std::array<uint64_t, kWords>;

  // The bits of the fields that are not its own, without those between fields.
  static Words MaskOfTemplate() {
    std::array<uint8_t, sizeof(Event)> bytes{};
    const Event event{};
    VisitFields(event, [&]<typename Field>(const char*, const Field& field) {
      if (IsOwn(event, field)) return;
      const auto offset =
          reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&event);
      std::fill_n(bytes.begin() + offset, sizeof(Field), uint8_t{0xff});
    });
    return std::bit_cast<Words>(bytes);
  }

  static uint64_t WordOf(const Event& event, size_t place) {
    uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(&event) + place * sizeof(word),
                sizeof(word));
    return word;
  }

  // Whether `event` is like `common` but for its own fields.
  static bool IsLike(const Event& event, const Event& common) {
    uint64_t differing = 0;
    for (size_t i = 0; i < kWords; ++i) {
      differing |= (WordOf(event, i) ^ WordOf(common, i)) & kTemplateMask[i];
    }
    return differing == 0;
  }

  // Programs do the same over and over: what followed one event follows it again. To look there
  // first takes a quarter of what finding an event by all of its fields does.
  bool IsExpected(const Event& event) {
    if (templates_.empty()) return false;
    for (const uint32_t expected : followers_[last_]) {
      if (!IsLike(event, templates_[expected])) continue;
      last_ = expected;
      return true;
    }
    return false;
  }

  // Sets last_. Of two templates with one hash, the older one is not found again: it may then be
  // here twice.
  void Find(const Event& event) {
    if (templates_.empty()) last_ = 0;  // another one may have been moved from here
    Event common = event;
    ((common.*kOwnFields = {}), ...);
    const Numbers numbers = NumbersOf(common);
    TemplateId& known = by_hash_[HashOf(numbers)];
    if (!known || NumbersOf(templates_[known.value - 1]) != numbers) {
      const auto place = static_cast<uint32_t>(templates_.size());
      templates_.push_back(common);
      followers_.push_back({place, place});
      known = TemplateId{place + 1};
    }
    followers_[last_] = {known.value - 1, followers_[last_][0]};
    last_ = known.value - 1;
  }

  static inline const Words kTemplateMask = MaskOfTemplate();

  Rows rows_;
  PackedColumns<2> owners_;  // process and track; empty: FindTracks was not called
  std::vector<Event> templates_;
  std::vector<std::array<uint32_t, 2>> followers_;  // of each of templates_, the newest first
  uint32_t last_ = 0;                               // in templates_
  FlatMap<TemplateId> by_hash_;                     // place in templates_ + 1
};

}  // namespace xpu
