/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds what the running process has mapped at an address, even while it is changing its mappings.
 *
 * The kernel's own helper takes the lock of the address space, which is then busy, and with
 * interrupts disabled, as in a sample, it tries only once. So the tree of mappings (a maple tree,
 * since Linux 6.1) is read here without the lock. A mapping that a thread is just changing may be
 * missed, and a wrong node leads to something that is not code or not mapped.
 */
#ifndef XPU_BPF_MAPPED_AREA_H
#define XPU_BPF_MAPPED_AREA_H

#include "bpf/unwind_layout.h"
#include "kernel_types.h"

#define VM_EXEC 4
#define PAGE_SHIFT 12
#define ENOENT 2

/* 0 on kernels without such a tree. */
const volatile bool may_read_map_tree = 0;

struct mapped_area {
  __u64 start;
  __u64 end;
  __u64 file_offset;
  __u64 flags;
  struct xpu_file file; /* inode 0: none */
};

enum area_lookup {
  AREA_UNKNOWN, /* could not be determined now */
  AREA_NONE,
  AREA_FOUND,
};

static long take_area(struct task_struct* task __attribute__((unused)), struct vm_area_struct* from,
                      struct mapped_area* area) {
  struct file* file = BPF_CORE_READ(from, vm_file);

  area->start = BPF_CORE_READ(from, vm_start);
  area->end = BPF_CORE_READ(from, vm_end);
  area->flags = BPF_CORE_READ(from, vm_flags);
  area->file_offset = BPF_CORE_READ(from, vm_pgoff) << PAGE_SHIFT;
  if (file) {
    area->file.inode = BPF_CORE_READ(file, f_inode, i_ino);
    area->file.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
  }
  return 0;
}

/* A reference to a node holds the node's type in the lower bits of its address. */
#define MAPLE_ROOT_IS_NODE(root) (((root)&3) == 2 && (root) > 4096)
#define MAPLE_NODE_OF(entry) ((void*)((entry) & ~0xffull))
#define MAPLE_TYPE_OF(entry) (((entry) >> 3) & 15)
#define MAPLE_MAX_LEVELS 8
#define MAPLE_MAX_SLOTS 16

/* The last slot in use. A full node of ranges does not store it. */
static __always_inline __u64 maple_last_slot(struct maple_range_64* node) {
  const __u64 pivots = bpf_core_field_size(node->pivot) / sizeof(node->pivot[0]);

  if (BPF_CORE_READ(node, pivot[pivots - 1])) return pivots;
  return BPF_CORE_READ(node, meta.end);
}

/*
 * What a node refers to for an address: a child node, an area, or 0. pivot[i] is the last address
 * of slot i; the last slot in use has none. Not static, so that the verifier checks it once.
 */
__attribute__((noinline)) __u64 maple_slot(__u64 entry, __u64 address) {
  void* node = MAPLE_NODE_OF(entry);
  __u64 pivots, slots, last, slot = 0, step;
  __u64 read; /* one for all reads, because stack space is short */

  switch (MAPLE_TYPE_OF(entry)) {
    case maple_leaf_64:
    case maple_range_64:
      pivots = bpf_core_field_offset(struct maple_range_64, pivot);
      slots = bpf_core_field_offset(struct maple_range_64, slot);
      last = maple_last_slot(node);
      break;
    case maple_arange_64:
      pivots = bpf_core_field_offset(struct maple_arange_64, pivot);
      slots = bpf_core_field_offset(struct maple_arange_64, slot);
      last = BPF_CORE_READ((struct maple_arange_64*)node, meta.end);
      break;
    default:
      return 0;
  }
  for (step = MAPLE_MAX_SLOTS / 2; step > 0; step /= 2) {
    if (slot + step > last) continue;
    read = 0;
    bpf_probe_read_kernel(&read, sizeof(read), node + pivots + (slot + step - 1) * sizeof(read));
    if (read < address) slot += step;
  }
  read = 0;
  bpf_probe_read_kernel(&read, sizeof(read), node + slots + slot * sizeof(read));
  return read;
}

static __always_inline enum area_lookup look_into_tree(__u64 address, struct mapped_area* area) {
  struct task_struct* task = (void*)bpf_get_current_task();
  __u64 entry = (__u64)BPF_CORE_READ(task, mm, mm_mt.ma_root);
  bool is_node = MAPLE_ROOT_IS_NODE(entry);
  int i;

  for (i = 0; i < MAPLE_MAX_LEVELS && is_node; i++) {
    is_node = MAPLE_TYPE_OF(entry) != maple_leaf_64;
    entry = maple_slot(entry, address);
  }
  if (is_node) return AREA_UNKNOWN;
  if (!entry) return AREA_NONE;
  take_area(task, (void*)entry, area);
  return address - area->start < area->end - area->start ? AREA_FOUND : AREA_NONE;
}

static __always_inline enum area_lookup look_up_area(__u64 address, struct mapped_area* area) {
  long result;

  if (may_read_map_tree && bpf_core_field_exists(struct mm_struct, mm_mt)) {
    return look_into_tree(address, area);
  }
  result = bpf_find_vma(bpf_get_current_task_btf(), address, take_area, area, 0);
  if (result) return result == -ENOENT ? AREA_NONE : AREA_UNKNOWN;
  return AREA_FOUND;
}

#endif
