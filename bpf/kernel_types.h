/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types and constants that our programs use, declared by hand: no vmlinux.h and no
 * header of the build host's kernel. Members marked preserve_access_index are found by name in
 * the running kernel's BTF when a program is loaded (CO-RE), so their order and the members left
 * out here do not matter. The constants are kernel ABI.
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

enum {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
  BPF_F_USER_STACK = 1 << 8,
  BPF_RB_NO_WAKEUP = 1 << 0,
  BPF_NOEXIST = 1,
  BPF_F_NO_PREALLOC = 1 << 0,
  BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
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
  unsigned long sp;
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

struct task_struct {
  struct pid* thread_pid;
  struct task_struct* group_leader;
};

#pragma clang attribute pop

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#endif
