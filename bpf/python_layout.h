/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where each version of CPython keeps its frames, and what the BPF programs report about them.
 * Written by the recorder, read by the programs (python.h) and by the injected library. Host byte
 * order, never stored.
 *
 *   python_processes    pid -> its interpreter
 *   python_threads      thread -> its state in the interpreter; only used by the programs
 *   python_codes_sent   code objects that the recorder has
 *   python_codes        ring: their names
 */
#ifndef XPU_BPF_PYTHON_LAYOUT_H
#define XPU_BPF_PYTHON_LAYOUT_H

#ifdef __bpf__
#include "kernel_types.h"
#else
#include <linux/types.h>
#endif

/* The most Python frames of a walk, including the interpreter's own between them. */
#define XPU_MAX_PYTHON_FRAMES 384

/*
 * Bytes that are read from a frame and from a code object. Frames of 3.11 and later are shorter,
 * and what follows one may not be readable.
 */
#define XPU_PYTHON_FRAME_BYTES 112
#define XPU_PYTHON_SHORT_FRAME_BYTES 80
#define XPU_PYTHON_CODE_BYTES 160
/* The start of a thread state, which contains its neighbors, its interpreter and its status. */
#define XPU_PYTHON_STATE_HEAD_BYTES 48
/*
 * The part of a code object that distinguishes it from others, from code_path minus this on: since
 * 3.12 a number that no other has, the names of its variables, its own names, its lines. The first
 * line number is added to them.
 */
#define XPU_PYTHON_BEFORE_PATH 24
#define XPU_PYTHON_HASHED_WORDS 7
#define XPU_PYTHON_FIRST_NUMBERED 0x030c

/* Marks members that a version does not have. */
#define XPU_PYTHON_NO_MEMBER 0xffff
/* frame_is_entry: the interpreter calls itself for each frame. */
#define XPU_PYTHON_ALWAYS 0xfffe

/* Offsets in bytes, in the order in which they are followed. */
struct xpu_python_layout {
  __u16 version; /* major << 8 | minor */
  /* _PyRuntimeState */
  __u16 interpreters;   /* first element of the list */
  __u16 current_thread; /* before 3.12: the thread that holds the lock */
  /* PyInterpreterState */
  __u16 next_interpreter;
  __u16 threads; /* first element of the list */
  /* PyThreadState */
  __u16 next_thread;   /* the previous one and the interpreter are the words beside it */
  __u16 native_thread; /* as gettid returns it, or what pthread_self returns */
  __u16 thread_number; /* in what pthread_self returns, as gettid returns it */
  __u16 status;        /* bit 3: the one that its thread has used last */
  __u16 thread_frame;  /* the innermost frame, or the _PyCFrame that refers to it */
  __u16 cframe_frame;  /* in a _PyCFrame, the innermost frame */
  /* _PyInterpreterFrame, before 3.11 PyFrameObject; below frame_bytes */
  __u16 frame_bytes;
  __u16 frame_code;
  __u16 frame_previous;
  __u16 frame_instruction; /* an address or, if it has a unit, a number of units */
  __u16 instruction_unit;  /* in bytes */
  __u16 frame_owner;
  /* 3.11; later a frame of the C stack lies below an entry frame; before, each frame is one */
  __u16 frame_is_entry;
  __u16 stack_owner; /* owners from this value on are not frames of a program */
  __u16 frame_copy;  /* which copy of the code it runs, 4 bytes; 0: the code itself */
  /* PyCodeObject; all but the last one below XPU_PYTHON_CODE_BYTES */
  __u16 code_first_line;
  __u16 code_path;
  __u16 code_name;
  __u16 code_line_table;
  __u16 code_instructions; /* of the first instruction */
  __u16 code_copies;       /* address of the array of copies: its size, then where each begins */
  /* objects */
  __u16 object_type;
  __u16 text_length;
  __u16 text_state;
  __u16 text_kind_shift; /* in the state: 3 bits of kind, then "compact", then "ascii" */
  __u16 text_ascii;      /* of the characters of an ASCII string */
  __u16 text_other;      /* of the characters of other strings */
  __u16 bytes_length;
  __u16 bytes_data;
};

struct xpu_python_process {
  __u64 runtime;   /* address of _PyRuntime */
  __u64 code_type; /* address of PyCode_Type */
  struct xpu_python_layout layout;
};

/* The interpreter of a PyThreadState, and how it was found. */
struct xpu_python_thread {
  __u64 state;
  /* first element of the list at that time; a later interpreter would precede it */
  __u64 interpreter;
};

struct xpu_thread_key {
  __u32 pid;
  __u32 tid;
};

/*
 * A code object of a process. Another one may be created at its address later, so `fingerprint`
 * identifies its content.
 */
struct xpu_python_code_key {
  __u64 code;
  __u32 pid;
  __u32 fingerprint;
};

/*
 * A frame takes two words of xpu_stack::frames: the address of its code object; then its
 * fingerprint in the upper half and the offset of the instruction in the lower. A 0 and an address
 * of the stack follow the frames that one activation of the interpreter's loop runs, if the address
 * is known or there are none. XPU_PYTHON_STATE: frames of another state of the thread follow.
 * XPU_PYTHON_BEGIN: the preceding frames of this state are invalid.
 */
#define XPU_PYTHON_BEGIN 1
#define XPU_PYTHON_STATE 2
#define XPU_PYTHON_FINGERPRINT_SHIFT 32
#define XPU_PYTHON_IS_ENTRY (1u << 31)
#define XPU_PYTHON_MAX_OFFSET ((1u << 30) - 2)
/* Instead of an offset, of code object 0: a loop that runs no function now. */
#define XPU_PYTHON_NO_FUNCTION ((1u << 30) - 1)

/* Whether each loop has data on the stack, whose address shows the order of the loops: since 3.11.
 */
static inline __attribute__((always_inline)) int xpu_python_has_loops(
    const struct xpu_python_layout* layout) {
  return layout->frame_is_entry != XPU_PYTHON_ALWAYS;
}

/* Where the array of copies has the address of one. */
static inline __attribute__((always_inline)) __u64 xpu_python_copy_place(__u64 copies,
                                                                         __u32 number) {
  return copies + 8 + (__u64)number * 8;
}

/*
 * How many bytes of instructions lie before that of a frame, of which `word` is the member
 * frame_instruction; `first`: address of the first one. In a frame that has just been created it is
 * before that.
 */
static inline __attribute__((always_inline)) __u64 xpu_python_offset(
    const struct xpu_python_layout* layout, __u64 first, __u64 word) {
  __u64 offset;

  if (layout->instruction_unit)
    offset = (word & 0xffffffff) * layout->instruction_unit;
  else
    offset = word - first;
  return offset > XPU_PYTHON_MAX_OFFSET ? 0 : offset;
}

/*
 * Without a number of its own, a code object that is created where another was may have its names
 * and lines where the other's were, too. Then what they say is hashed as well: the hash of the
 * name, and the length, the hash and the first bytes of the line table.
 */
#define XPU_PYTHON_LINE_TABLE_WORDS 3

static inline __attribute__((always_inline)) int xpu_python_needs_content(
    const struct xpu_python_layout* layout) {
  return layout->version < XPU_PYTHON_FIRST_NUMBERED;
}

/* Where a string object has its hash. */
static inline __attribute__((always_inline)) __u64 xpu_python_text_hash(
    const struct xpu_python_layout* layout, __u64 text) {
  return text + layout->text_length + 8;
}

/* Why a walk of Python frames ended. */
enum xpu_python_stop {
  XPU_PYTHON_COMPLETE,
  XPU_PYTHON_DEPTH,
  XPU_PYTHON_UNREADABLE,
};

#define XPU_PYTHON_NAME_BYTES 1024
#define XPU_PYTHON_PATH_BYTES 2048
#define XPU_PYTHON_LINE_TABLE_BYTES 8192

/* Ring `python_codes`. */
struct xpu_python_code {
  struct xpu_python_code_key key;
  __u32 version;
  __u32 first_line;
  __u32 name_bytes;
  __u32 name_kind; /* bytes per character: 1 (Latin-1), 2, 4 */
  __u32 path_bytes;
  __u32 path_kind;
  __u32 line_table_bytes;
  __u32 line_table_cut; /* the table was longer */
  __u8 name[XPU_PYTHON_NAME_BYTES];
  __u8 path[XPU_PYTHON_PATH_BYTES];
  __u8 line_table[XPU_PYTHON_LINE_TABLE_BYTES];
};

#endif
