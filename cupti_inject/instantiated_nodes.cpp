#include "cupti_inject/instantiated_nodes.h"

#include <sys/mman.h>

namespace xpu::inject {

void InstantiatedNodes::Add(const Node& node) {
  const Locked locked(lock_);
  if (nodes_ == nullptr) {
    void* memory = mmap(nullptr, kMax * sizeof(Node), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    nodes_ = static_cast<Node*>(memory);
  }
  if (count_ < kMax) nodes_[count_++] = node;
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
