/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks the Python frames of the running thread. cupti_inject/python_stack.cpp does the same walk
 * in C++. Needs bpf_loop, Linux 5.17.
 */
#ifndef XPU_BPF_PYTHON_H
#define XPU_BPF_PYTHON_H

#include "bpf/events.h"
#include "bpf/python_layout.h"
#include "kernel_types.h"
#include "loop.h"

/* Set by the recorder before loading. False removes all of this, for the verifier too. */
const volatile bool walk_python = 0;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16 << 10);
  __type(key, __u32);
  __type(value, struct xpu_python_process);
} python_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16 << 10);
  __type(key, struct xpu_thread_key);
  __type(value, struct xpu_python_thread);
} python_threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 64 << 10);
  __type(key, struct xpu_python_code_key);
  __type(value, __u8);
} python_codes_sent SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20);
} python_codes SEC(".maps");

static __always_inline bool read_python(void* value, __u32 bytes, __u64 address) {
  return bpf_probe_read_user(value, bytes, (void*)address) == 0;
}

/* In xpu_stack::window, which the walk of the native frames has finished with. */
#define FRAME_WORDS 0
#define CODE_WORDS 16
#define CONTENT_WORDS 40
#define STATE_WORDS 48

/* ---- the states of a thread ---- */

#define MAX_PYTHON_THREADS 4096
#define MAX_STATES 16 /* of one thread */
/* The thread has used this state last. */
#define STATUS_BOUND (1u << 3)

struct thread_search {
  __u64 interpreter; /* to search next */
  __u64 thread;      /* of the previous interpreter, to examine next */
  __u64 native_thread;
  __u32 count;   /* of states found, which are in the window */
  __u32 several; /* there are several interpreters, in each of which a thread may have a state */
};

static __always_inline bool read_thread_number(const struct xpu_python_layout* layout, __u64 state,
                                               __u64* number) {
  __u32 in_thread = 0;

  if (!read_python(number, 8, state + layout->native_thread)) return false;
  if (layout->thread_number == XPU_PYTHON_NO_MEMBER) return true;
  if (!read_python(&in_thread, 4, *number + layout->thread_number)) return false;
  *number = in_thread;
  return true;
}

static __always_inline bool is_of_thread(const struct xpu_python_layout* layout, __u64 state,
                                         __u64 number) {
  __u64 native = 0;

  return read_thread_number(layout, state, &native) && native == number;
}

/* Returns 0 if the thread runs nothing in this state. */
static __always_inline __u64 innermost_frame(const struct xpu_python_layout* layout, __u64 state,
                                             __u64* cframe) {
  __u64 frame = 0;

  *cframe = 0;
  if (!read_python(&frame, 8, state + layout->thread_frame)) return 0;
  if (!frame || layout->cframe_frame == XPU_PYTHON_NO_MEMBER) return frame;
  *cframe = frame;
  return read_python(&frame, 8, *cframe + layout->cframe_frame) ? frame : 0;
}

/*
 * Advances by one thread or one interpreter; 1 ends the search. Not static, so that the verifier
 * assumes nothing about `search`: up to Linux 6.7 it follows only the first call of a loop, in
 * which there is no thread yet, and removes the rest as unreachable.
 */
__attribute__((noinline)) int search_thread(struct thread_search* search,
                                            const struct xpu_python_layout* layout,
                                            struct xpu_stack* stack) {
  __u32 status = STATUS_BOUND;
  __u64 cframe;

  if (!search || !layout || !stack) return 1;
  if (!search->thread) {
    if (!search->interpreter ||
        !read_python(&search->thread, 8, search->interpreter + layout->threads) ||
        !read_python(&search->interpreter, 8, search->interpreter + layout->next_interpreter))
      return 1;
    return 0;
  }
  if (is_of_thread(layout, search->thread, search->native_thread) &&
      (!search->several || innermost_frame(layout, search->thread, &cframe))) {
    if (layout->status != XPU_PYTHON_NO_MEMBER)
      read_python(&status, 4, search->thread + layout->status);
    if (!search->several && status & STATUS_BOUND) search->count = 0;
    if (search->several || search->count == 0)
      stack->window[STATE_WORDS + (search->count++ & (MAX_STATES - 1))] = search->thread;
    if (search->count == MAX_STATES || (!search->several && status & STATUS_BOUND)) return 1;
  }
  return !read_python(&search->thread, 8, search->thread + layout->next_thread);
}

struct thread_loop {
  /* not in `search`: the verifier forgets pointers in memory that is passed on */
  const struct xpu_python_layout* layout;
  struct xpu_stack* stack;
  struct thread_search search;
};

static long search_one_thread(__u32 index __attribute__((unused)), struct thread_loop* loop) {
  return ends_loop(search_thread(&loop->search, loop->layout, loop->stack));
}

/* The number of a thread in its own pid namespace, as gettid returns it. */
static __always_inline __u64 own_thread_number(struct task_struct* task) {
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  __u32 level = BPF_CORE_READ(pid, level);
  __u32 upid_bytes = bpf_core_type_size(struct upid);
  struct upid* upid = (void*)&pid->numbers[0] + level * upid_bytes;

  return (__u32)BPF_CORE_READ(upid, nr);
}

/*
 * Whether a state that was found earlier is still the one that its thread has used last. A deleted
 * one keeps its content, but its interpreter's list no longer leads to it.
 */
static __always_inline bool is_in_use(const struct xpu_python_layout* layout,
                                      struct xpu_stack* stack, __u64 state, __u64 number) {
  __u64* head = &stack->window[CONTENT_WORDS]; /* the neighbors in the list, the interpreter, ... */
  __u64 place;

  if (!is_of_thread(layout, state, number) ||
      !read_python(head, XPU_PYTHON_STATE_HEAD_BYTES, state))
    return false;
  if (layout->status != XPU_PYTHON_NO_MEMBER &&
      !(head[(layout->status / 8) & 7] >> (layout->status % 8 * 8) & STATUS_BOUND))
    return false;
  place = head[0] ? head[0] + layout->next_thread : head[2] + layout->threads;
  return read_python(&place, 8, place) && place == state;
}

/*
 * Writes the states of the thread to the window and returns how many there are. Not inlined, for
 * the depth of the BPF stack.
 */
static __attribute__((noinline)) __u32 find_states(const struct xpu_python_process* process,
                                                   const struct xpu_thread_key* key,
                                                   struct xpu_stack* stack) {
  const struct xpu_python_layout* layout = &process->layout;
  struct xpu_python_thread* known = bpf_map_lookup_elem(&python_threads, key);
  struct thread_loop loop = {
      .layout = layout,
      .stack = stack,
      .search.native_thread = own_thread_number(bpf_get_current_task_btf()),
  };
  struct thread_search* search = &loop.search;
  __u64* states = &stack->window[STATE_WORDS];
  struct xpu_python_thread found = {};
  __u64 next = 0;

  if (!read_python(&found.interpreter, 8, process->runtime + layout->interpreters) ||
      !found.interpreter)
    return 0;
  if (known && known->interpreter != found.interpreter) known = 0;
  if (!known && !read_python(&next, 8, found.interpreter + layout->next_interpreter)) return 0;
  search->several = next != 0;
  if (layout->current_thread != XPU_PYTHON_NO_MEMBER && !(next && xpu_python_has_loops(layout)) &&
      read_python(states, 8, process->runtime + layout->current_thread) && *states &&
      is_of_thread(layout, *states, search->native_thread)) {
    search->count = 1;
  } else if (known && is_in_use(layout, stack, known->state, search->native_thread)) {
    *states = known->state;
    return 1;
  } else {
    search->interpreter = found.interpreter;
    bpf_loop(MAX_PYTHON_THREADS, search_one_thread, &loop, 0);
  }
  found.state = *states;
  /* With several interpreters a thread changes between states, so none is kept. */
  if (search->count && !next && !(known && known->state == found.state))
    bpf_map_update_elem(&python_threads, key, &found, 0);
  return search->count;
}

/* ---- the names of a code object ---- */

/* The header of a string object, from text_length on. */
struct text_head {
  __u64 length;
  __u64 hash;
  __u32 state;
  __u32 padding;
};

/* Returns the number of bytes, 0 if the string cannot be read. `limit` is a constant. */
static __always_inline __u32 copy_text(const struct xpu_python_layout* layout, __u64 text, __u8* to,
                                       __u32 limit, __u32* kind) {
  struct text_head head = {};
  __u64 bytes, at;
  __u32 state;

  if (!text || !read_python(&head, sizeof(head), text + layout->text_length)) return 0;
  state = head.state >> (layout->text_kind_shift & 31);
  *kind = state & 7;
  if (*kind != 1 && *kind != 2 && *kind != 4) return 0;
  if (!(state & 8)) return 0; /* not compact: not created by the interpreter */
  at = text + (state & 16 ? layout->text_ascii : layout->text_other);
  bytes = head.length > limit ? limit : head.length * *kind;
  if (bytes > limit) bytes = limit;
  return bytes > 0 && read_python(to, bytes, at) ? bytes : 0;
}

static __always_inline void copy_line_table(const struct xpu_python_layout* layout, __u64 table,
                                            struct xpu_python_code* event) {
  __u64 bytes = 0;

  event->line_table_bytes = 0;
  event->line_table_cut = 0;
  if (!table || !read_python(&bytes, 8, table + layout->bytes_length)) return;
  if (bytes > XPU_PYTHON_LINE_TABLE_BYTES) {
    bytes = XPU_PYTHON_LINE_TABLE_BYTES;
    event->line_table_cut = 1;
  }
  if (bytes > 0 && read_python(event->line_table, bytes, table + layout->bytes_data))
    event->line_table_bytes = bytes;
}

/* ---- frames ---- */

struct python_walk {
  __u64 code_type;
  __u64 frame;
  __u64 cframe; /* of the loop that runs `frame`; 0: this version has none */
  __u32 first;  /* index of the first one in stack->frames */
  __u32 count;
  __u32 pid;
  __u32 stop;
  __u32 states;    /* number of them in the window */
  __u32 state;     /* the next one */
  __u8 may_leave;  /* no C frame of this state has been left */
  __u8 is_entered; /* the last frame entered the loop, whose C frame is reported next */
};

/* Takes the address of something on the stack that belongs to a loop which runs a function. */
static __always_inline void take_loop(struct xpu_stack* stack, __u64 address) {
  if (address >= stack->innermost_start && address < stack->innermost_end) stack->python_on_top = 1;
}

/* Begins with the frames of the next state; false if there is none. */
static __always_inline bool begin_state(struct python_walk* walk, struct xpu_stack* stack,
                                        const struct xpu_python_layout* layout) {
  __u64 state;

  /* Without addresses the order of the functions of two states is not known. */
  if (walk->state >= walk->states || (walk->count > 0 && !xpu_python_has_loops(layout)))
    return false;
  state = stack->window[STATE_WORDS + (walk->state++ & (MAX_STATES - 1))];
  walk->may_leave = 1;
  walk->frame = innermost_frame(layout, state, &walk->cframe);
  if (walk->frame && walk->cframe) take_loop(stack, walk->cframe);
  return true;
}

/* A word that was read, by its byte offset. */
static __always_inline __u64 window_word(const struct xpu_stack* stack, __u32 first, __u32 offset) {
  return stack->window[first + ((offset / 8) & 31)];
}

static __always_inline __u8 window_byte(struct xpu_stack* stack, __u32 first, __u32 offset) {
  return window_word(stack, first, offset) >> (offset % 8 * 8);
}

static __always_inline __u64 add_to_hash(__u64 hash, __u64 word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

/* Not inlined, for the depth of the BPF stack. */
static __attribute__((noinline)) __u32 fingerprint_of_window(
    struct xpu_stack* stack, const struct xpu_python_layout* layout) {
  __u64* content = &stack->window[CONTENT_WORDS];
  __u64 hash = window_word(stack, CODE_WORDS, layout->code_first_line);
  int i;

  for (i = 0; i < XPU_PYTHON_HASHED_WORDS; i++) {
    __u32 offset = layout->code_path - XPU_PYTHON_BEFORE_PATH + i * 8;

    hash = add_to_hash(hash, window_word(stack, CODE_WORDS, offset));
  }
  if (!xpu_python_needs_content(layout)) return hash;
  /* What cannot be read is zero. */
  read_python(content, 8,
              xpu_python_text_hash(layout, window_word(stack, CODE_WORDS, layout->code_name)));
  read_python(content + 1, XPU_PYTHON_LINE_TABLE_WORDS * 8,
              window_word(stack, CODE_WORDS, layout->code_line_table) + layout->bytes_length);
  for (i = 0; i < 1 + XPU_PYTHON_LINE_TABLE_WORDS; i++) hash = add_to_hash(hash, content[i]);
  return hash;
}

/* Returns 1 if the recorder has its names. Not static: see find_rule. */
__attribute__((noinline)) int send_python_code(struct xpu_stack* stack,
                                               const struct xpu_python_layout* layout,
                                               const struct xpu_python_code_key* key) {
  struct xpu_python_code* event;
  int whole;

  if (!stack || !layout || !key) return 0;
  event = bpf_ringbuf_reserve(&python_codes, sizeof(*event), 0);
  if (!event) return 0;
  event->key = *key;
  event->version = layout->version;
  event->first_line =
      window_word(stack, CODE_WORDS, layout->code_first_line) >> (layout->code_first_line % 8 * 8);
  event->name_bytes = copy_text(layout, window_word(stack, CODE_WORDS, layout->code_name),
                                event->name, XPU_PYTHON_NAME_BYTES, &event->name_kind);
  event->path_bytes = copy_text(layout, window_word(stack, CODE_WORDS, layout->code_path),
                                event->path, XPU_PYTHON_PATH_BYTES, &event->path_kind);
  copy_line_table(layout, window_word(stack, CODE_WORDS, layout->code_line_table), event);
  whole = event->name_bytes > 0;
  bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
  return whole;
}

/*
 * Returns the fingerprint of the code object, whose names the recorder then has; 0 if there is
 * none.
 */
static __always_inline __u32 ensure_code_sent(struct python_walk* walk, struct xpu_stack* stack,
                                              const struct xpu_python_layout* layout, __u64 code) {
  struct xpu_python_code_key key = {.code = code, .pid = walk->pid};
  __u8 sent = 1;

  if (!read_python(&stack->window[CODE_WORDS], XPU_PYTHON_CODE_BYTES, code) ||
      window_word(stack, CODE_WORDS, layout->object_type) != walk->code_type)
    return 0;
  key.fingerprint = fingerprint_of_window(stack, layout) | 1;
  /* If it was not sent completely, the next walk that meets it tries again. */
  if (!bpf_map_lookup_elem(&python_codes_sent, &key) && send_python_code(stack, layout, &key)) {
    bpf_map_update_elem(&python_codes_sent, &key, &sent, 0);
  }
  return key.fingerprint;
}

/*
 * Address of the first instruction of the code that the frame runs, which without the global lock
 * may be a copy for its thread.
 */
static __attribute__((noinline)) __u64 first_instruction(struct xpu_stack* stack,
                                                         const struct xpu_python_layout* layout,
                                                         __u64 code) {
  __u64* word = &stack->window[CONTENT_WORDS]; /* the stack of BPF has no room left */
  __u32 number;

  if (layout->frame_copy == XPU_PYTHON_NO_MEMBER) return code + layout->code_instructions;
  number = window_word(stack, FRAME_WORDS, layout->frame_copy) >> (layout->frame_copy % 8 * 8);
  if (number && read_python(word, 8, code + layout->code_copies) &&
      read_python(word, 8, xpu_python_copy_place(*word, number)))
    return *word;
  return code + layout->code_instructions;
}

/*
 * Takes the code object and the instruction of the frame that was read, as two words. Returns 0 if
 * it is not a frame.
 */
static __always_inline int take_frame(struct python_walk* walk, struct xpu_stack* stack,
                                      const struct xpu_python_layout* layout, __u64 words[2]) {
  __u64 code = window_word(stack, FRAME_WORDS, layout->frame_code) & ~7ull;
  __u64 into;
  __u32 fingerprint;

  words[0] = words[1] = 0;
  if (window_byte(stack, FRAME_WORDS, layout->frame_owner) >= layout->stack_owner) {
    words[1] = walk->frame;
    take_loop(stack, walk->frame);
    return 1;
  }
  fingerprint = ensure_code_sent(walk, stack, layout, code);
  if (!fingerprint) return 0;
  into = xpu_python_offset(layout, first_instruction(stack, layout, code),
                           window_word(stack, FRAME_WORDS, layout->frame_instruction));
  words[0] = code;
  words[1] = (__u64)fingerprint << XPU_PYTHON_FINGERPRINT_SHIFT | into;
  if (layout->frame_is_entry == XPU_PYTHON_ALWAYS ||
      (layout->frame_is_entry != XPU_PYTHON_NO_MEMBER &&
       window_byte(stack, FRAME_WORDS, layout->frame_is_entry)))
    words[1] |= XPU_PYTHON_IS_ENTRY;
  return 1;
}

/*
 * In the first instructions of the interpreter's loop its C frame has no frame yet, only data of
 * earlier calls. Returns false if there is no outer C frame.
 */
static __always_inline bool leave_cframe(struct python_walk* walk, struct xpu_stack* stack,
                                         const struct xpu_python_layout* layout) {
  const __u32 frame = layout->cframe_frame;
  __u64 outer = 0;

  if (!walk->cframe || !walk->may_leave || !read_python(&outer, 8, walk->cframe + frame + 8) ||
      !outer || !read_python(&walk->frame, 8, outer + frame))
    return false;
  walk->cframe = outer;
  walk->may_leave = walk->is_entered = stack->python_on_top = 0;
  return true;
}

static __always_inline bool read_frame(struct xpu_stack* stack,
                                       const struct xpu_python_layout* layout, __u64 frame) {
  void* to = &stack->window[FRAME_WORDS];

  if (layout->frame_bytes == XPU_PYTHON_FRAME_BYTES)
    return read_python(to, XPU_PYTHON_FRAME_BYTES, frame);
  return read_python(to, XPU_PYTHON_SHORT_FRAME_BYTES, frame);
}

/* Walks frame number `index`; 1 ends the walk. For the use of `index` see walk_frame. */
__attribute__((noinline)) int walk_python_frame(struct python_walk* walk, struct xpu_stack* stack,
                                                const struct xpu_python_layout* layout,
                                                __u32 index) {
  __u64 words[2] = {};
  __u32 slot;

  if (!walk || !stack || !layout) return 1;
  if (!walk->frame && !walk->is_entered && walk->state >= walk->states) return 1;
  slot = walk->first + index * 2;
  if (index >= XPU_MAX_PYTHON_FRAMES || slot >= XPU_STACK_WORDS - 1) {
    walk->stop = XPU_PYTHON_DEPTH;
    return 1;
  }
  if (walk->is_entered) {
    words[1] = walk->cframe;
    walk->is_entered = walk->may_leave = 0;
    if (!read_python(&walk->cframe, 8, walk->cframe + layout->cframe_frame + 8)) walk->cframe = 0;
  } else if (!walk->frame) {
    if (!begin_state(walk, stack, layout)) return 1;
    words[0] = XPU_PYTHON_STATE;
  } else if (read_frame(stack, layout, walk->frame) && take_frame(walk, stack, layout, words)) {
    walk->frame = window_word(stack, FRAME_WORDS, layout->frame_previous);
    /* Later versions have a frame of the interpreter there, whose address says as much. */
    walk->is_entered =
        walk->states > 1 && walk->cframe && (__u32)words[1] & XPU_PYTHON_IS_ENTRY && words[0];
  } else if (leave_cframe(walk, stack, layout)) {
    words[0] = XPU_PYTHON_BEGIN;
  } else {
    walk->stop = XPU_PYTHON_UNREADABLE;
    return 1;
  }
  stack->frames[slot] = words[0];
  stack->frames[slot + 1] = words[1];
  walk->count = index + 1;
  return 0;
}

struct python_loop {
  /* not in `walk`: the verifier forgets pointers in memory that is passed on */
  struct xpu_stack* stack;
  const struct xpu_python_layout* layout;
  struct python_walk walk;
};

static long walk_one_python_frame(__u32 index, struct python_loop* loop) {
  return ends_loop(walk_python_frame(&loop->walk, loop->stack, loop->layout, index));
}

/*
 * Appends the Python frames after the `first` other frames. A separate function for the reason
 * given at walk_user_stack.
 */
static __attribute__((noinline)) void walk_python_stack(__u32 pid, __u32 tid,
                                                        struct xpu_stack* stack, __u32 first) {
  const struct xpu_python_process* process;
  struct xpu_thread_key key = {.pid = pid, .tid = tid};
  struct python_loop loop = {.stack = stack};
  struct python_walk* walk = &loop.walk;

  if (!walk_python) return;
  process = bpf_map_lookup_elem(&python_processes, &pid);
  if (!process) return;
  loop.layout = &process->layout;
  walk->states = find_states(process, &key, stack);
  walk->code_type = process->code_type;
  walk->first = first;
  walk->pid = pid;
  walk->stop = XPU_PYTHON_COMPLETE;
  if (!begin_state(walk, stack, loop.layout)) return;
  bpf_loop(XPU_MAX_PYTHON_FRAMES + 1, walk_one_python_frame, &loop, 0);
  stack->python_frames = walk->count;
  stack->python_stop = walk->stop;
}

#endif
