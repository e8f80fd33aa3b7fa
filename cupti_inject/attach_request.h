// What xpu-record writes into a process that runs already, so that a library loaded into it finds
// its recorder: no environment variable names one there, and the abstract socket of wire.h is not
// reachable from another network namespace.
//
// The recorder maps an area into the process, puts an AttachRequest at its start, and starts a
// thread there, which loads the library and calls xpu_inject_attach with the address of the
// request. From then on the library owns the area. It makes a pair of connected sockets and offers
// one end (kOffered); the recorder takes a copy of that end (pidfd_getfd) and says so (kTaken); the
// library closes its own copy, unmaps the area, and the handshake of wire.h goes on over the pair.
// Each side waits for the other only for kAttachPatienceNs: whoever is alone cleans up, but for the
// memory into which a recorder that was stopped may write when it goes on. An answer takes up to
// 1.2 s where another session in the process may be about to end.
//
// The session lasts until the recorder asks for its end (wire::kGateEnds), closes its ring or its
// end of the connection, or dies. The library sets wire::State::kFinished when everything was sent,
// then leaves the program; once it has freed everything it closes its end of the connection, and
// the next recorder may attach.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xpu::wire {

inline constexpr char kAttachSymbol[] = "xpu_inject_attach";
inline constexpr uint32_t kAttachVersion = 1;  // of AttachRequest; another one is refused
inline constexpr uint64_t kAttachPatienceNs = 2'000'000'000;
inline constexpr size_t kAttachPathBytes = 1024;
inline constexpr size_t kAttachErrorBytes = 512;
// Why a recorder is refused.
inline constexpr char kAttachIsTaken[] = "another xpu-record is recording this process";
inline constexpr char kAttachWaits[] =
    "a thread of an earlier recording still waits in it until the GPU has finished its work";
inline constexpr char kAttachIsForked[] =
    "it was forked from a process that xpu-record had attached to, so CUPTI does not work in it";

enum class AttachState : uint32_t {
  kLoading = 0,   // the recorder has started the thread
  kOffered = 1,   // the library: `socket` is there to be taken
  kTaken = 2,     // the recorder: it has its copy, or it has read `error`
  kRefused = 3,   // the library, or what loads it: `error` says why
  kWithdrawn = 4  // whoever has given up waiting
};

struct AttachRequest {
  uint32_t version;                // kAttachVersion; this and `state` are in every version
  std::atomic<AttachState> state;  // moved forward; in the program by compare-and-swap
  std::atomic<int32_t> socket;     // a descriptor of the process; -1: not yet
  uint32_t reserved;
  uint64_t area_start;  // of the mapping that holds this
  uint64_t area_bytes;
  uint64_t session;                      // of the recorder, as in XPU_INJECT
  char cupti_library[kAttachPathBytes];  // the libcupti to use, a path; "": the library searches
  char error[kAttachErrorBytes];         // one sentence, ends with a zero
};

}  // namespace xpu::wire

// Exported, because nobody calls it by way of CUDA or NVTX: the thread that the recorder started
// in the process enters the library here. Detaches that thread, runs the whole session on it and
// returns nullptr when it is over. `request`: a wire::AttachRequest.
extern "C" void* xpu_inject_attach(void* request);
