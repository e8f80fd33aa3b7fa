/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the unwind rule for an address of the running process in the recorder's maps. */
#ifndef XPU_BPF_UNWIND_RULES_H
#define XPU_BPF_UNWIND_RULES_H

#include "bpf/unwind_layout.h"
#include "kernel_types.h"
#include "mapped_area.h"

/* Set by the recorder before loading. False removes all of this, for the verifier too. */
const volatile bool walk_by_tables = 0;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, XPU_MAX_PROCESSES);
  __type(key, __u32);
  __type(value, struct xpu_code);
} unwind_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, XPU_MAX_MAPPINGS);
  __type(key, __u32);
  __type(value, struct xpu_mapping);
} unwind_mappings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, XPU_MAX_FILES);
  __type(key, struct xpu_file);
  __type(value, struct xpu_file_table);
} unwind_files SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, XPU_MAX_PAGES);
  __type(key, __u32);
  __type(value, struct xpu_page);
} unwind_pages SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, XPU_MAX_RULES);
  __type(key, __u32);
  __type(value, struct xpu_rule);
} unwind_rules SEC(".maps");

struct unwind_row_block {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(__u32));
  /* Not declared by type: clang's BTF of this inner definition would have no members. */
  __uint(value_size, sizeof(struct xpu_row_block));
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, XPU_MAX_ROW_BLOCKS);
  __type(key, __u32);
  __array(values, struct unwind_row_block);
} unwind_rows SEC(".maps");

/* The input and the result of a search. */
struct lookup {
  __u32 first; /* as in xpu_code */
  __u32 count;
  struct xpu_mapping last; /* of the previous frame; often the next one lies there too */
  struct xpu_mapping area; /* found by find_area */
  struct xpu_rule rule;
};

enum found {
  FOUND_NOTHING, /* no code at the address */
  FOUND_UNKNOWN, /* could not be determined now */
  FOUND_CODE,    /* code without a rule */
  FOUND_RULE,
};

/*
 * Binary searches take a fixed number of steps: a comparison changes a number, never the path
 * through the program, because each branch would double the verifier's work. The steps suffice for
 * the largest possible number of elements.
 */
#define MAPPING_STEPS 18
#define ROW_STEPS 13

/* All ones if a <= b, else 0; the difference fits into 63 bits. */
static __always_inline __u64 mask_if_not_above(__u64 a, __u64 b) {
  return ~(__u64)((__s64)(b - a) >> 63);
}

static __always_inline bool contains(const struct xpu_mapping* mapping, __u64 address) {
  return address - mapping->start < mapping->end - mapping->start;
}

/* Returns false if the address is in no known mapping. */
static __always_inline bool find_mapping(struct lookup* lookup, __u64 address) {
  __u32 low = lookup->first;
  __u32 count = lookup->count;
  struct xpu_mapping* mapping;
  int i;

  if (contains(&lookup->last, address)) return true;
  if (contains(&lookup->area, address)) {
    lookup->last = lookup->area;
    return true;
  }
  if (count == 0) return false;
  for (i = 0; i < MAPPING_STEPS; i++) {
    __u32 half = count / 2;
    __u32 middle = low + half;

    mapping = bpf_map_lookup_elem(&unwind_mappings, &middle);
    if (!mapping) return false;
    low += half & mask_if_not_above(mapping->start, address);
    count -= half;
    if (count <= 1) break;
  }
  mapping = bpf_map_lookup_elem(&unwind_mappings, &low);
  if (!mapping || !contains(mapping, address)) return false;
  lookup->last = *mapping;
  return true;
}

/*
 * Looks up what the process itself has mapped there, and its table if it is a file with one: for a
 * program that has just begun, or a library that was just loaded.
 */
static __always_inline enum found find_area(struct lookup* lookup, __u64 address) {
  struct mapped_area area = {};
  struct xpu_mapping mapping = {};
  struct xpu_file_table* table;
  enum area_lookup result = look_up_area(address, &area);

  if (result == AREA_UNKNOWN) return FOUND_UNKNOWN;
  if (result == AREA_NONE || !(area.flags & VM_EXEC)) return FOUND_NOTHING;
  mapping.start = area.start;
  mapping.end = area.end;
  if (area.file.inode) {
    table = bpf_map_lookup_elem(&unwind_files, &area.file);
    mapping.page_count = XPU_TABLE_NOT_READY;
    if (table) {
      mapping.origin = area.start - area.file_offset + table->origin;
      mapping.first_page = table->first_page;
      mapping.page_count = table->page_count;
    }
  }
  lookup->area = lookup->last = mapping;
  return FOUND_CODE;
}

/* The rule of an address in lookup->last; 0 if its table has none. */
static __always_inline struct xpu_rule* rule_in_table(struct lookup* lookup, __u64 address) {
  __u64 into = address - lookup->last.origin;
  __u64 page_number = into >> XPU_UNWIND_PAGE_SHIFT;
  __u32 offset = into & (XPU_UNWIND_PAGE_BYTES - 1);
  __u32 zero = 0, key, low, count, i;
  struct xpu_page* page;
  struct xpu_row_block* block;
  void* blocks;

  if (lookup->last.page_count == XPU_TABLE_NOT_READY || page_number >= lookup->last.page_count)
    return 0;
  key = lookup->last.first_page + page_number;
  page = bpf_map_lookup_elem(&unwind_pages, &key);
  if (!page || page->row_count == 0) return 0;
  key = page->first_row / XPU_ROWS_PER_BLOCK;
  blocks = bpf_map_lookup_elem(&unwind_rows, &key);
  if (!blocks) return 0;
  block = bpf_map_lookup_elem(blocks, &zero);
  if (!block) return 0;
  low = page->first_row;
  count = page->row_count;
  /* The last row whose offset is not above the address; the first row always qualifies. */
  for (i = 0; i < ROW_STEPS; i++) {
    __u32 half = count / 2;
    __u32 middle = (low + half) & (XPU_ROWS_PER_BLOCK - 1);

    low += half & mask_if_not_above(block->rows[middle].offset, offset);
    count -= half;
    if (count <= 1) break;
  }
  key = block->rows[low & (XPU_ROWS_PER_BLOCK - 1)].rule;
  return bpf_map_lookup_elem(&unwind_rules, &key);
}

/* Not static, so that the verifier checks it once, not once for every path that leads here. */
__attribute__((noinline)) int find_rule(struct lookup* lookup, __u64 address) {
  struct xpu_rule* rule;
  enum found found;

  if (!lookup) return FOUND_NOTHING;
  if (!find_mapping(lookup, address)) {
    found = find_area(lookup, address);
    if (found != FOUND_CODE) return found;
  }
  rule = rule_in_table(lookup, address);
  if (!rule || rule->cfa == XPU_CFA_NONE) return FOUND_CODE;
  lookup->rule = *rule;
  return FOUND_RULE;
}

#endif
