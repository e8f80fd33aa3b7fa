#include "cupti_inject/instantiated_nodes.h"

#include <sys/mman.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {

bool InstantiatedNodes::Grow() {
  constexpr size_t kFirst = size_t{1} << 14;
  if (room_ == kMax) return false;
  const size_t room = room_ == 0 ? kFirst : 2 * room_;
  void* memory = room_ == 0
                     ? MapZeroed(room * sizeof(Node))
                     : mremap(nodes_, room_ * sizeof(Node), room * sizeof(Node), MREMAP_MAYMOVE);
  if (memory == nullptr || memory == MAP_FAILED) return false;
  nodes_ = static_cast<Node*>(memory);
  room_ = room;
  return true;
}

void InstantiatedNodes::Close() {
  if (nodes_ != nullptr) munmap(nodes_, room_ * sizeof(Node));
  nodes_ = nullptr;
  count_ = 0;
  room_ = 0;
}

void InstantiatedNodes::Add(const Node& node) {
  const Locked locked(lock_);
  if (count_ < room_ || Grow()) nodes_[count_++] = node;
}

void InstantiatedNodes::Remove(const void* handle) {
  const Locked locked(lock_);
  for (size_t i = count_; i > 0; --i) {
    if (nodes_[i - 1].handle == handle) return Drop(i - 1);
  }
}

bool InstantiatedNodes::Take(uint32_t correlation_id, Node* node) {
  const Locked locked(lock_);
  for (size_t i = count_; i > 0; --i) {
    if (nodes_[i - 1].correlation_id != correlation_id) continue;
    *node = nodes_[i - 1];
    Drop(i - 1);
    return true;
  }
  return false;
}

}  // namespace xpu::inject
