// Very many events in little memory. Of a million kernels, a few hundred differ in more than their
// times and numbers: what differs from event to event is kept for each, the rest once for all that
// share it. Events without such likeness need a little more than in a vector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "format/base/ids.h"
#include "format/events.h"
#include "report/model/flat_map.h"
#include "report/model/huge_pages.h"

namespace xpu {

// A long array that grows in place: the kernel moves its pages instead of copying them, so that it
// never takes twice its memory.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GrowingArray() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T& operator[](size_t index) { return data_[index]; }
  const T& operator[](size_t index) const { return data_[index]; }

  // By value: it may be one of its own, which growing moves.
  void push_back(T value) {
    if ((size_ + 1) * sizeof(T) > bytes_) Grow();
    new (data_ + size_) T(value);
    ++size_;
  }

 private:
  static constexpr size_t kFirstBytes = size_t{64} << 10;

  void Grow() {
    const size_t bytes = std::max(kFirstBytes, 2 * bytes_);
    void* grown =
        data_ == nullptr ? MapPages(bytes) : ::mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) throw std::bad_alloc();
    WantHugePages(grown, bytes);
    data_ = static_cast<T*>(grown);
    bytes_ = bytes;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t bytes_ = 0;  // mapped; those that nothing was put into take no memory
};

// A field of an event, kept outside it.
template <auto kField>
struct KeptField;
template <typename Event, typename Value, Value Event::*kField>
struct KeptField<kField> {
  Value value;
};

// `kOwnFields`: those that differ from event to event, as in &Kernel::start_ns.
template <typename Event, auto... kOwnFields>
class CompactList {
 public:
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }

  void push_back(const Event& event) {
    if (!IsExpected(event)) Find(event);
    rows_.push_back({{event.*kOwnFields}..., last_});
  }

  // By value: there is no such event in memory.
  Event operator[](size_t index) const {
    const Row& row = rows_[index];
    Event event = rests_[row.rest];
    ((event.*kOwnFields = row.KeptField<kOwnFields>::value), ...);
    return event;
  }

  // One field, without the others: Get<&Kernel::name>(index).
  template <auto kField>
  auto Get(size_t index) const {
    return FieldOf<kField>(rows_[index]);
  }

  // By an own field; equal ones keep their order.
  template <auto kField>
  void SortBy() {
    const auto is_before = [this](const Row& a, const Row& b) {
      return FieldOf<kField>(a) < FieldOf<kField>(b);
    };
    if (std::is_sorted(rows_.begin(), rows_.end(), is_before)) return;
    std::stable_sort(rows_.begin(), rows_.end(), is_before);
  }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Event;

    Iterator(const CompactList& list, size_t index) : list_(&list), index_(index) {}
    Event operator*() const { return (*list_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const CompactList* list_;
    size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  using RestId = Id<struct RestTag, uint32_t>;
  using Numbers = std::array<uint64_t, FieldCount<Event>()>;

  struct Row : KeptField<kOwnFields>... {
    uint32_t rest;  // in rests_
  };

  template <auto kField>
  auto FieldOf(const Row& row) const {
    if constexpr (std::is_base_of_v<KeptField<kField>, Row>) {
      return row.KeptField<kField>::value;
    } else {
      return rests_[row.rest].*kField;
    }
  }

  // Inlined, `count` is known at each field; else its memory would be read and written for each.
  [[gnu::flatten]] static Numbers NumbersOf(const Event& event) {
    Numbers numbers;
    size_t count = 0;
    VisitFields(event, [&](const char*, const auto& field) {
      if constexpr (requires { field.value; }) {
        numbers[count++] = field.value;
      } else {
        numbers[count++] = static_cast<uint64_t>(field);
      }
    });
    return numbers;
  }

  // Four sums at a time: one alone would wait for each multiplication.
  static uint64_t HashOf(const Numbers& numbers) {
    constexpr uint64_t kMix = 0x9e3779b97f4a7c15ull;
    std::array<uint64_t, 4> sums{};
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

  // Whether `event` is like `rest` but for its own fields. Inlined, it is known for each field
  // whether it is one of these.
  [[gnu::flatten]] static bool IsLike(const Event& event, const Event& rest) {
    const auto* of_event = reinterpret_cast<const std::byte*>(&event);
    const auto* of_rest = reinterpret_cast<const std::byte*>(&rest);
    bool is_like = true;
    VisitFields(event, [&]<typename Field>(const char*, const Field& field) {
      if (!is_like || IsOwn(event, field)) return;
      const ptrdiff_t offset = reinterpret_cast<const std::byte*>(&field) - of_event;
      is_like = field == *reinterpret_cast<const Field*>(of_rest + offset);
    });
    return is_like;
  }

  // Programs do the same over and over: what followed one event follows it again. To look there
  // first takes a quarter of what finding an event by all of its fields does.
  bool IsExpected(const Event& event) {
    if (rests_.empty()) return false;
    for (const uint32_t expected : followers_[last_]) {
      if (!IsLike(event, rests_[expected])) continue;
      last_ = expected;
      return true;
    }
    return false;
  }

  // Sets last_. Of two rests with one hash, the older one is not found again: it may then be here
  // twice.
  void Find(const Event& event) {
    Event rest = event;
    ((rest.*kOwnFields = {}), ...);
    const Numbers numbers = NumbersOf(rest);
    RestId& known = by_hash_[HashOf(numbers)];
    if (!known || NumbersOf(rests_[known.value - 1]) != numbers) {
      const auto place = static_cast<uint32_t>(rests_.size());
      rests_.push_back(rest);
      followers_.push_back({place, place});
      known = RestId{place + 1};
    }
    followers_[last_] = {known.value - 1, followers_[last_][0]};
    last_ = known.value - 1;
  }

  GrowingArray<Row> rows_;
  std::vector<Event> rests_;
  std::vector<std::array<uint32_t, 2>> followers_;  // of each of rests_, the newest first
  uint32_t last_ = 0;                               // in rests_
  FlatMap<RestId> by_hash_;                         // place in rests_ + 1
};

}  // namespace xpu
