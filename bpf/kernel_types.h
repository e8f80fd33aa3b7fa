/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types and constants that the programs use, declared by hand. A generated vmlinux.h of
 * 130,000 lines was rejected, and headers of the build host's kernel are not needed. Members marked
 * preserve_access_index are found by name in the running kernel's BTF when a program is loaded
 * (CO-RE), so their order and the omitted members do not matter. The constants are kernel ABI.
 */
#ifndef XPU_BPF_KERNEL_TYPES_H
#define XPU_BPF_KERNEL_TYPES_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0

enum {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
  BPF_F_USER_STACK = 1 << 8,
  BPF_RB_NO_WAKEUP = 1 << 0,
  BPF_NOEXIST = 1,
  BPF_F_NO_PREALLOC = 1 << 0,
  BPF_F_MMAPABLE = 1 << 10,
  BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
};

/* enum maple_type */
enum {
  maple_leaf_64 = 1,
  maple_range_64 = 2,
  maple_arange_64 = 3,
};

struct bpf_pidns_info {
  __u32 pid;
  __u32 tgid;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
  unsigned long di;
  unsigned long si;
  unsigned long dx;
  unsigned long cx;
  unsigned long ax;
  unsigned long bx;
  unsigned long bp;
  unsigned long r8;
  unsigned long r9;
  unsigned long r10;
  unsigned long r11;
  unsigned long r12;
  unsigned long r13;
  unsigned long r14;
  unsigned long r15;
  unsigned long ip;
  unsigned long sp;
};

struct bpf_perf_event_data {
  struct pt_regs regs;
  __u64 sample_period;
};

struct perf_event_attr {
  __u32 wakeup_events;
};

struct perf_event {
  struct perf_event_attr attr;
};

/* What a perf_event program receives instead of struct bpf_perf_event_data. */
struct bpf_perf_event_data_kern {
  struct perf_event* event;
};

typedef struct {
  int counter;
} atomic_t;

struct super_block {
  unsigned int s_dev;
  unsigned long s_magic;
};

struct inode {
  unsigned short i_mode;
  struct super_block* i_sb;
  unsigned long i_ino;
};

struct qstr {
  const unsigned char* name;
};

struct dentry {
  struct qstr d_name;
};

struct path {
  struct dentry* dentry;
};

struct file {
  struct inode* f_inode;
  struct path f_path;
};

struct vm_area_struct {
  unsigned long vm_start;
  unsigned long vm_end;
  unsigned long vm_flags;
  unsigned long vm_pgoff;
  struct file* vm_file;
};

struct ns_common {
  unsigned int inum;
};

struct pid_namespace {
  struct ns_common ns;
};

struct upid {
  int nr;
  struct pid_namespace* ns;
};

struct pid {
  unsigned int level;
  struct upid numbers[1];
};

struct maple_metadata {
  unsigned char end;
};

struct maple_range_64 {
  unsigned long pivot[15];
  union {
    void* slot[16];
    struct {
      void* pad[15];
      struct maple_metadata meta;
    };
  };
};

struct maple_arange_64 {
  unsigned long pivot[9];
  void* slot[10];
  struct maple_metadata meta;
};

struct maple_tree {
  void* ma_root;
};

struct xol_area {
  unsigned long vaddr;
};

struct uprobes_state {
  struct xol_area* xol_area; /* where probed instructions run out of line; one page */
};

struct mm_struct {
  struct maple_tree mm_mt;
  struct uprobes_state uprobes_state;
};

struct return_instance {
  struct return_instance* next;
  unsigned long stack; /* address of the return address */
  unsigned long orig_ret_vaddr;
  bool chained; /* orig_ret_vaddr belongs to another probe of the same call */
};

struct uprobe_task {
  struct return_instance* return_instances;
  unsigned long vaddr;     /* of the instruction that runs out of line */
  unsigned long xol_vaddr; /* of its copy; 0: none runs */
};

struct signal_struct {
  atomic_t live; /* threads that have not ended */
};

struct perf_event_context;

struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};

struct files_struct {
  struct fdtable* fdt;
};

struct sched_info {
  unsigned long pcount;
};

struct task_struct {
  unsigned int __state;
  void* stack;
  int on_cpu;
  struct files_struct* files;
  struct signal_struct* signal;
  unsigned int in_execve : 1;
  struct uprobe_task* utask;
  struct mm_struct* mm;
  struct sched_info sched_info;
  int* clear_child_tid;
  struct pid* thread_pid;
  struct task_struct* group_leader;
  struct perf_event_context* perf_event_ctxp;
};

struct task_struct___before_6_2 {
  struct perf_event_context* perf_event_ctxp[2]; /* for hardware and software events */
};

#pragma clang attribute pop

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#endif
