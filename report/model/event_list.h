// The events of one kind, as views read them: by place, in order, field by field. CompactList has
// the same members, so that no view depends on how a kind is kept.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace xpu {

template <typename Event, typename Allocator = std::allocator<Event>>
class EventList {
 public:
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  const Event& operator[](size_t index) const { return rows_[index]; }
  const Event& front() const { return rows_.front(); }
  const Event& back() const { return rows_.back(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

  // One field: Get<&Mapping::path>(index).
  template <auto kField>
  auto Get(size_t index) const {
    return rows_[index].*kField;
  }

  void push_back(const Event& event) { rows_.push_back(event); }

  // For those who load, join, order and leave out events.
  std::vector<Event, Allocator>& rows() { return rows_; }
  const std::vector<Event, Allocator>& rows() const { return rows_; }

 private:
  std::vector<Event, Allocator> rows_;
};

}  // namespace xpu
