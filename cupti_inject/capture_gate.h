// Whether what the program starts is recorded now, and which of what it started was: wire.h says
// who opens and closes the gate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/nvtx_texts.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/wire.h"

namespace xpu::inject {

// Which calls came while the gate was open, by their correlation ids: their records follow later.
// The numbers of the last 67 million calls; older ones are long delivered.
class RecordedCalls {
 public:
  static constexpr uint32_t kIds = 1u << 26;
  static constexpr size_t kBytes = kIds / 32 * sizeof(uint64_t);  // touched as ids come

  bool Open();
  void Close();
  void Note(uint32_t correlation_id, bool recorded);
  bool IsNoted(uint32_t correlation_id) const;
  // Of a call that nobody noted, what was noted of one before it. `otherwise`: there is none near.
  bool IsRecorded(uint32_t correlation_id, bool otherwise) const;

 private:
  static constexpr uint32_t kIdsPerWord = 32;
  static constexpr uint32_t kWords = kIds / kIdsPerWord;
  static constexpr uint32_t kWordsBack = 128;

  // The low half of a word has a bit for each call that was noted, the high one for those left out.
  std::atomic<uint64_t>* words_ = nullptr;
};

// What of a thread's ranges is open: plain data in initial-exec TLS.
struct OpenCapture {
  uint32_t domain;
  uint32_t depth;  // ranges of that domain from the one that opened the gate on; 0: none did
};

class CaptureGate {
 public:
  // After the header has been written by the recorder. `header` outlives this object. `attached`:
  // the program has run already, and will go on.
  void Open(const wire::RingHeader* header, RingProducer* ring, bool attached = false);
  void Close() { calls_.Close(); }
  // After an attach: nothing that begins from now on is recorded, until it is unshut.
  void Shut() {
    has_later_.store(false, std::memory_order_relaxed);
    is_shut_.store(true, std::memory_order_seq_cst);
  }
  void Unshut() { is_shut_.store(false, std::memory_order_seq_cst); }
  // Work that began after that has ended, and was left out.
  bool has_later() const { return has_later_.load(std::memory_order_relaxed); }
  // After an attach, some time after it: the calls that were under way then have ended. Until now
  // what comes from a call that nobody saw begin is not of this recording.
  void Settle() { is_settled_.store(true, std::memory_order_relaxed); }
  // How many records were left out for that reason.
  uint64_t earlier() const { return earlier_.load(std::memory_order_relaxed); }

  bool is_on() const {
    if (!may_close_) return true;
    if (is_shut_.load(std::memory_order_relaxed)) return false;
    const uint32_t gate = header_->gate.load(std::memory_order_relaxed);
    if ((gate & wire::kGatePaused) != 0) return false;
    return !has_ranges_ || open_.load(std::memory_order_relaxed) > 0 ||
           (gate & wire::kGateOthersOpen) != 0;
  }
  // The recorder wants what is left, and then nothing more.
  bool ends() const {
    return may_end_ && (header_->gate.load(std::memory_order_relaxed) & wire::kGateEnds) != 0;
  }
  bool may_end() const { return may_end_; }

  // At the entry of a call that starts work. True: it is recorded.
  bool Admit(uint32_t correlation_id) {
    if (!may_close_) return true;
    // Without an id: it has begun inside a call that CUPTI did not see begin.
    const bool on = correlation_id != 0 && is_on();
    calls_.Note(correlation_id, on);
    if (attached_ && !is_settled_.load(std::memory_order_relaxed)) [[unlikely]] {
      NoteNewest(correlation_id);
    }
    return on;
  }
  // A record of CUPTI's is of a call that is recorded, or of none.
  bool Keeps(const uint8_t* record, size_t bytes);

  // cudaProfilerStart, cudaProfilerStop.
  void SetProfiler(bool on);

  // NVTX. Ranges of it may open the gate.
  bool follows_ranges() const { return name_.bytes > 0; }
  void NameDomain(uint32_t domain, TextView name);
  // Before a range is reported, after one that is over.
  void Push(uint32_t domain, TextView text, OpenCapture& thread);
  void Pop(uint32_t domain, OpenCapture& thread);
  void Start(uint32_t domain, TextView text, uint64_t range);
  void End(uint64_t range);

 private:
  static constexpr uint32_t kDomains = 1024;
  static constexpr uint32_t kStarted = 64;

  void NoteNewest(uint32_t correlation_id);
  bool IsEarlier(uint32_t kind, uint32_t correlation_id) const;
  bool IsCaptureRange(uint32_t domain, TextView text) const;
  void OpenOne();
  void CloseOne();
  void Tell(bool is_open);

  const wire::RingHeader* header_ = nullptr;
  RingProducer* ring_ = nullptr;
  bool may_close_ = false;
  bool has_ranges_ = false;
  bool may_end_ = false;
  bool attached_ = false;
  std::atomic<bool> is_shut_{false};
  std::atomic<bool> is_settled_{false};
  std::atomic<uint32_t> newest_{0};  // call that was noted before it was settled
  std::atomic<uint64_t> earlier_{0};
  std::atomic<bool> has_later_{false};
  char range_[wire::kCaptureRangeBytes] =
      {};          // our own copy: the header is the recorder's to write
  TextView name_;  // empty: none of NVTX opens the gate
  TextView domain_;
  std::atomic<uint32_t> open_{0};  // capture ranges
  std::atomic<bool> profiler_{false};
  std::atomic<uint64_t> domains_[kDomains / 64] = {};  // that have the name
  std::atomic<uint64_t> started_[kStarted] = {};       // capture ranges that were started
  RecordedCalls calls_;
};

}  // namespace xpu::inject
