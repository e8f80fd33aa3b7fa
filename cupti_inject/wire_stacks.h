// What of wire.h launch stacks are made of.
//
// With kSettingInlineStacks the library walks its own thread's stack in the
// callback, by tables (symbolize/unwind/unwind_table.h) that the recorder makes. It gives each file
// with code that the loader has mapped a number and reports it (CodeFileMessage); the recorder
// puts the table into the arena, one for all processes of a recording, which only it can write, and
// the table's place into RingHeader::tables[number]. A stack is sent once (StackMessage), each
// launch names it (LaunchMessage). Until the table of some code is there the library sends a piece
// of the stack itself (StackCopyMessage), which the recorder unwinds. Code that the loader knows
// nothing of is reported by the recorder, which reads /proc/PID/maps (RingHeader::other_code).
//
// Files come and go, at the same addresses too. The library follows the loader on a thread of its
// own, and says in the ring, in order, what has come (CodeFileMessage) and gone
// (CodeFileGoneMessage). A launch that finds that the loader has loaded another file since waits
// for that thread; where it cannot, its copy says which list it is to be walked by.
//
// Python. What an interpreter runs is walked in the same callback, by offsets that the recorder
// finds in its file (RingHeader::python). Code objects and stacks are sent once too.
#pragma once

#include <cstdint>

#include "cupti_inject/wire.h"

namespace xpu::wire {

// A file with code was mapped.
struct CodeFileMessage {
  MessageHeader header;
  uint32_t file;  // its number, below kMaxCodeFiles: the same for the same file
  uint32_t name_bytes;
  uint64_t start_address;  // of the executable segment
  uint64_t end_address;
  uint64_t bias;            // address minus link address
  uint64_t file_offset;     // of start_address
  uint32_t build_id_bytes;  // 0: not known
  uint32_t reserved;
  uint8_t build_id[kMaxBuildIdBytes];
};

struct CodeFileGoneMessage {
  MessageHeader header;
  uint64_t start_address;
};

// Every file of the loader's list has been reported, after it had loaded so many (modulo 2^32).
struct CodeFilesCompleteMessage {
  MessageHeader header;
  uint32_t loads;
  uint32_t reserved;
};

// Defines `stack` for the rest of this ring. Sent again when it is not sure that it arrived.
struct StackMessage {
  MessageHeader header;
  uint32_t stack;  // from 1
  uint32_t frame_count;
  uint32_t stop;   // xpu::WalkStop
  uint32_t flags;  // xpu::kWalkTables, ...
};

// Stacks from here on are named by one launch only.
inline constexpr uint32_t kFirstSingleStack = 1u << 24;

// Defines `code` for the rest of this ring: the name, the path, the line table lie after it.
struct PythonCodeMessage {
  MessageHeader header;
  uint32_t code;  // from 1
  uint32_t version;
  uint32_t first_line;
  uint32_t name_bytes;
  uint32_t name_kind;  // bytes of a character: 1 (Latin-1), 2, 4
  uint32_t path_bytes;
  uint32_t path_kind;
  uint32_t line_table_bytes;
};

// Defines `stack`, as StackMessage does. The frames are of 64 bits, innermost first: the code above
// (0: it could not be determined, or XPU_PYTHON_NO_FUNCTION), kPythonEntry, and the offset of the
// instruction below.
struct PythonStackMessage {
  MessageHeader header;
  uint32_t stack;  // from 1
  uint32_t frame_count;
  uint32_t stop;  // enum xpu_python_stop
  uint32_t reserved;
};

inline constexpr uint32_t kPythonEntry = 1u << 31;

struct LaunchCall {
  uint64_t time_ns;  // CLOCK_MONOTONIC
  uint32_t correlation_id;
  uint32_t domain_and_callback_id;
  uint32_t tid;
  uint32_t cpu;
  uint32_t python_stack;  // 0: not in Python
  uint32_t reserved;
};

// After the message, with kDomainAllocator: memory that PyTorch's allocator has handed out, or
// taken back.
struct Block {
  uint64_t address;
  int64_t size_bytes;        // negative: taken back
  uint64_t allocated_bytes;  // of all blocks together, then
  uint64_t reserved_bytes;   // what the allocator has from CUDA
  uint32_t device;           // as CUDA numbers it in the program
  uint32_t has_totals;       // 0: this version does not say the two sums
};

// A block without a stack.
struct BlockMessage {
  MessageHeader header;
  LaunchCall call;
  Block block;
};

struct LaunchMessage {
  MessageHeader header;
  LaunchCall call;
  uint32_t stack;
  uint32_t reserved;
};

struct StackCopyMessage {
  MessageHeader header;
  LaunchCall call;
  uint64_t ip;
  uint64_t sp;
  uint64_t bp;
  uint32_t bytes;
  uint32_t loads;  // walked over the list that the CodeFilesCompleteMessage with this number
                   // completes; 0: the present one
};

// A walk met an address that is in no file: the recorder finds out whether it is code.
struct OtherCodeMessage {
  MessageHeader header;
  uint64_t address;
};

}  // namespace xpu::wire
