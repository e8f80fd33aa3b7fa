/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps with the unwind tables, written by the recorder through shared memory and searched by
 * the programs (unwind.h). Shared by kernel and recorder, host byte order, never stored.
 *
 *   unwind_processes   pid -> the part of `unwind_mappings` with its code
 *   unwind_mappings    executable mappings, sorted by address within a process
 *   unwind_files       file -> its table, for mappings that the recorder has not published yet
 *   unwind_pages       for each XPU_UNWIND_PAGE_BYTES of a file's code: its rows
 *   unwind_rows        blocks of rows; the rows of a page lie in one block
 *   unwind_rules       the rules that rows refer to, shared by all files
 *
 * The recorder writes entries that no process refers to, then makes a process refer to them, and
 * reuses an entry only after a while, because a program may still be reading it.
 */
#ifndef XPU_BPF_UNWIND_LAYOUT_H
#define XPU_BPF_UNWIND_LAYOUT_H

#include "bpf/events.h"

#define XPU_UNWIND_PAGE_SHIFT 12
#define XPU_UNWIND_PAGE_BYTES (1u << XPU_UNWIND_PAGE_SHIFT)

#define XPU_MAX_PROCESSES (16u << 10)
#define XPU_MAX_FILES (16u << 10)
#define XPU_MAX_MAPPINGS (256u << 10)
#define XPU_MAX_PAGES (1u << 20)
#define XPU_MAX_RULES (64u << 10)
/* 4 MiB, the largest value that kernels allow. */
#define XPU_ROWS_PER_BLOCK (1024u << 10)
#define XPU_MAX_ROW_BLOCKS 256u

/* Values of xpu_mapping::page_count for code without pages. */
#define XPU_TABLE_NONE 0
#define XPU_TABLE_NOT_READY 0xffffffff

struct xpu_mapping {
  __u64 start;
  __u64 end;
  __u64 origin; /* address of the table's first page in the process */
  __u32 first_page;
  __u32 page_count;
};

/* As in the kernel: dev_t, i_ino. */
struct xpu_file {
  __u64 device;
  __u64 inode;
};

struct xpu_file_table {
  __u64 origin; /* offset in the file of the table's first page */
  __u32 first_page;
  __u32 page_count;
};

struct xpu_code {
  __u32 first; /* in `unwind_mappings` */
  __u32 count; /* 0: not yet published */
};

struct xpu_page {
  __u32 first_row; /* block * XPU_ROWS_PER_BLOCK + index in the block */
  __u32 row_count;
};

struct xpu_row {
  __u16 offset; /* of the row's first address in the page */
  __u16 rule;
};

struct xpu_row_block {
  struct xpu_row rows[XPU_ROWS_PER_BLOCK];
};

/* Equal to UnwindCfa, UnwindRbp and UnwindRule in symbolize/unwind/unwind_table.h. */
enum xpu_cfa {
  XPU_CFA_NONE,
  XPU_CFA_RSP,
  XPU_CFA_RBP,
  XPU_CFA_AT_RSP,
  XPU_CFA_AT_RBP,
  XPU_CFA_PLT,
  XPU_CFA_SIGNAL,
  XPU_CFA_END,
  XPU_CFA_UNSUPPORTED,
  XPU_CFA_REGISTER,
  XPU_CFA_GO_SWITCH,
  XPU_CFA_OTHER_STACK,
};

enum xpu_rbp {
  XPU_RBP_SAME,
  XPU_RBP_AT_CFA,
  XPU_RBP_AT_RBP,
  XPU_RBP_UNDEFINED,
};

struct xpu_rule {
  __u8 cfa;
  __u8 rbp;
  __s16 rbp_offset;
  __s32 cfa_offset;
};

#endif
