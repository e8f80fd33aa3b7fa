// The nodes of executable graphs that are being made.
//
// The driver clones a child graph into a graph of its own, then moves those nodes into the
// executable graph around it, where they have other ids, and tells nobody. Kernel records carry the
// new ids: so each clone is remembered until its graph is finished, and asked for its id again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/lock.h"

namespace xpu::inject {

// Any thread. Memory is mapped as it fills; nodes beyond kMax, or for which there is none, are not
// remembered.
class InstantiatedNodes {
 public:
  static constexpr size_t kMax = size_t{1} << 20;

  struct Node {
    void* handle;
    uint64_t id;
    uint32_t correlation_id;  // of the call that instantiates
  };

  void Add(const Node& node);
  // The node is about to be freed.
  void Remove(const void* handle);
  void Close();
  // Takes one node of the call out; false: there is none left.
  bool Take(uint32_t correlation_id, Node* node);

 private:
  bool Grow();
  void Drop(size_t index) { nodes_[index] = nodes_[--count_]; }

  Lock lock_;
  Node* nodes_ = nullptr;
  size_t count_ = 0;
  size_t room_ = 0;
};

}  // namespace xpu::inject
