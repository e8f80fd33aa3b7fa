#include "cupti_inject/capture_gate.h"

#include <cstring>

#include "cupti_inject/lock.h"
#include "cupti_inject/record_pointers.h"
#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

bool IsSame(TextView a, TextView b) {
  return a.bytes == b.bytes && (a.bytes == 0 || std::memcmp(a.text, b.text, a.bytes) == 0);
}

bool IsWork(uint32_t kind) { return WorkStartOffset(kind) != 0; }

}  // namespace

bool RecordedCalls::Open() {
  words_ = static_cast<std::atomic<uint64_t>*>(MapZeroed(kBytes));
  return words_ != nullptr;
}

void RecordedCalls::Close() {
  if (words_ != nullptr) munmap(words_, kBytes);
  words_ = nullptr;
}

bool RecordedCalls::IsNoted(uint32_t correlation_id) const {
  if (words_ == nullptr) return true;
  const uint64_t word =
      words_[correlation_id / kIdsPerWord % kWords].load(std::memory_order_relaxed);
  return (word >> correlation_id % kIdsPerWord & 1) != 0;
}

void RecordedCalls::Note(uint32_t correlation_id, bool recorded) {
  if (words_ == nullptr) return;
  std::atomic<uint64_t>& word = words_[correlation_id / kIdsPerWord % kWords];
  const uint64_t noted = uint64_t{1} << correlation_id % kIdsPerWord;
  const uint64_t left_out = noted << kIdsPerWord;
  if (recorded) {
    // The bit of a call of long ago.
    if ((word.load(std::memory_order_relaxed) & left_out) != 0) word.fetch_and(~left_out);
    word.fetch_or(noted, std::memory_order_relaxed);
  } else {
    word.fetch_or(noted | left_out, std::memory_order_relaxed);
  }
}

bool RecordedCalls::IsRecorded(uint32_t correlation_id, bool otherwise) const {
  if (words_ == nullptr) return otherwise;
  uint32_t at = correlation_id / kIdsPerWord;
  // Of its own word, only the bits up to its own.
  uint64_t mask = (uint64_t{2} << correlation_id % kIdsPerWord) - 1;
  for (uint32_t i = 0; i < kWordsBack; ++i, --at, mask = UINT32_MAX) {
    const uint64_t word = words_[at % kWords].load(std::memory_order_relaxed);
    const uint64_t noted = word & mask & UINT32_MAX;
    if (noted == 0) continue;
    const int last = 63 - __builtin_clzll(noted);
    return (word >> (kIdsPerWord + static_cast<uint32_t>(last)) & 1) == 0;
  }
  return otherwise;
}

void CaptureGate::Open(const wire::RingHeader* header, RingProducer* ring, bool attached) {
  header_ = header;
  ring_ = ring;
  const uint32_t settings = header->settings;
  may_end_ = (settings & wire::kSettingMayEnd) != 0;
  if ((settings & wire::kSettingNvtxRange) != 0) {
    std::memcpy(range_, header->capture_range, sizeof(range_) - 1);
    name_ = ViewOf(range_);
    if (name_.bytes + 1 < sizeof(range_)) domain_ = ViewOf(range_ + name_.bytes + 1);
  }
  has_ranges_ = (settings & (wire::kSettingNvtxRange | wire::kSettingProfilerApi)) != 0;
  attached_ = attached;
  may_close_ = (attached || (settings & wire::kSettingPauses) != 0) && calls_.Open();
}

void CaptureGate::NoteNewest(uint32_t correlation_id) {
  uint32_t newest = newest_.load(std::memory_order_relaxed);
  while (newest < correlation_id &&
         !newest_.compare_exchange_weak(newest, correlation_id, std::memory_order_relaxed)) {
  }
}

// Work that was launched when nobody was there to see it: by a call from before the attach, or by
// one that had begun when its callback was switched on.
bool CaptureGate::IsEarlier(uint32_t kind, uint32_t correlation_id) const {
  if (!attached_ || !IsWork(kind)) return false;
  if (correlation_id == 0) return true;
  const bool may_be = !is_settled_.load(std::memory_order_relaxed) ||
                      correlation_id <= newest_.load(std::memory_order_relaxed);
  return may_be && !calls_.IsNoted(correlation_id);
}

bool CaptureGate::Keeps(const uint8_t* record, size_t bytes) {
  uint32_t kind = 0;
  if (!may_close_ || bytes < sizeof(kind)) return true;
  std::memcpy(&kind, record, sizeof(kind));
  const size_t offset = CorrelationOffset(kind);
  uint32_t correlation_id = 0;
  if (offset == 0) return true;
  if (offset + sizeof(correlation_id) <= bytes) {
    std::memcpy(&correlation_id, record + offset, sizeof(correlation_id));
  }
  if (IsEarlier(kind, correlation_id)) {
    earlier_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (correlation_id == 0) return is_on();
  const bool is_recorded = calls_.IsRecorded(correlation_id, is_on());
  if (!is_recorded && IsWork(kind) && is_shut_.load(std::memory_order_relaxed)) {
    has_later_.store(true, std::memory_order_relaxed);
  }
  return is_recorded;
}

void CaptureGate::Tell(bool is_open) {
  wire::SwitchMessage message{};
  message.time_ns = MonotonicNs();
  message.is_open = is_open ? 1 : 0;
  if (!ring_->Send(wire::MessageKind::kSwitch, message)) ring_->Count(wire::kCounterOthersDropped);
}

void CaptureGate::OpenOne() {
  if (open_.fetch_add(1) == 0) Tell(true);
}

void CaptureGate::CloseOne() {
  if (open_.fetch_sub(1) == 1) Tell(false);
}

void CaptureGate::SetProfiler(bool on) {
  if (profiler_.exchange(on) == on) return;
  on ? OpenOne() : CloseOne();
}

void CaptureGate::NameDomain(uint32_t domain, TextView name) {
  if (name_.bytes == 0 || domain >= kDomains || !IsSame(name, domain_)) return;
  domains_[domain / 64].fetch_or(uint64_t{1} << domain % 64);
}

bool CaptureGate::IsCaptureRange(uint32_t domain, TextView text) const {
  if (name_.bytes == 0 || !IsSame(text, name_)) return false;
  if (domain_.bytes == 1 && domain_.text[0] == '*') return true;
  if (domain == 0 || domain_.bytes == 0) return domain == 0 && domain_.bytes == 0;
  return domain < kDomains && (domains_[domain / 64].load() >> domain % 64 & 1) != 0;
}

void CaptureGate::Push(uint32_t domain, TextView text, OpenCapture& thread) {
  if (thread.depth > 0) {
    if (domain == thread.domain) ++thread.depth;
  } else if (IsCaptureRange(domain, text)) {
    thread = {domain, 1};
    OpenOne();
  }
}

void CaptureGate::Pop(uint32_t domain, OpenCapture& thread) {
  if (thread.depth == 0 || domain != thread.domain) return;
  if (--thread.depth == 0) CloseOne();
}

void CaptureGate::Start(uint32_t domain, TextView text, uint64_t range) {
  if (!IsCaptureRange(domain, text)) return;
  for (std::atomic<uint64_t>& started : started_) {
    uint64_t free = 0;
    if (started.compare_exchange_strong(free, range)) return OpenOne();
  }
}

void CaptureGate::End(uint64_t range) {
  if (name_.bytes == 0 || range == 0) return;
  for (std::atomic<uint64_t>& started : started_) {
    uint64_t expected = range;
    if (started.compare_exchange_strong(expected, 0)) return CloseOne();
  }
}

}  // namespace xpu::inject
