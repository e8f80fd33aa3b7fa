// Which files the loader has mapped where: a list sorted by address that walks on any thread
// search, replaced by one thread (the flusher) when the loader's counters have changed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/loader_counters.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/ring_producer.h"

struct dl_phdr_info;

namespace xpu::inject {

struct CodeRange {
  uint64_t start;
  uint64_t end;
  uint64_t bias;  // address minus link address
  uint32_t
      file;  // as reported to the recorder; wire::kMaxCodeFiles: it was not, there are too many
  uint32_t reserved;
};

// In memory of its own.
struct CodeSnapshot {
  size_t bytes;         // of the mapping
  uint64_t generation;  // grows when code went away: what was known of addresses is void
  CodeSnapshot* older;  // retired, not freed yet
  uint32_t count;
  uint32_t reserved;
  CodeRange ranges[1];  // `count` of them

  // nullptr: the address is in no file.
  const CodeRange* Find(uint64_t address) const {
    uint32_t low = 0, end = count;
    while (low < end) {
      const uint32_t middle = low + (end - low) / 2;
      if (ranges[middle].end <= address) {
        low = middle + 1;
      } else {
        end = middle;
      }
    }
    return low < count && ranges[low].start <= address ? &ranges[low] : nullptr;
  }
};

class CodeFiles {
 public:
  bool Open(RingProducer* ring);
  void Close();  // when nobody reads

  // Takes a new list when the loader has changed its own, and tells the recorder of what is new.
  // Takes the loader's lock: never in a callback. One thread at a time.
  void Refresh();
  // How often the loader has loaded a file by now, where that is more often than the list knows of:
  // at an address of it another one may lie. 0: it is the right list. Any thread.
  uint32_t LoadsSince() const {
    const uint32_t loads = counters_.Loads();
    return loads > listed_loads_.load(std::memory_order_acquire) ? loads : 0;
  }
  // Nobody refreshes: the list is as right as it will be.
  void StopFollowing() { counters_.Close(); }
  // Until the list is of so many loads (LoadsSince). `wake`: what the refreshing thread waits for.
  // It may itself wait for the loader's lock, which a thread in dlopen holds, or for CUPTI: at most
  // some milliseconds, and for each number only once. False: it is not. Any thread.
  bool WaitForLoads(uint32_t loads, Signal& wake);
  // How many numbers files have got so far; for the refreshing thread.
  uint32_t number_count() const { return number_count_; }

  // Keeps a list alive while a walk uses it.
  class Reading {
   public:
    Reading(CodeFiles& files, uint32_t tid)
        : readers_(files.readers_[tid % kStripes].count), snapshot_(files.Enter(readers_)) {}
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { readers_.fetch_sub(1, std::memory_order_release); }
    const CodeSnapshot& operator*() const { return *snapshot_; }

   private:
    std::atomic<uint32_t>& readers_;
    const CodeSnapshot* snapshot_;
  };

 private:
  static constexpr uint32_t kStripes = 32;
  static constexpr uint32_t kMaxRanges = 8192;
  static constexpr uint32_t kNumberSlots = 2 * wire::kMaxCodeFiles;
  static constexpr uint32_t kMaxRetired = 64;

  struct alignas(64) Stripe {
    std::atomic<uint32_t> count{0};
  };
  struct Number {
    uint64_t identity;  // 0: free
    uint32_t number;
    uint32_t reserved;
  };

  const CodeSnapshot* Enter(std::atomic<uint32_t>& readers) {
    // Before the list is read: who replaces the list looks at the readers after that.
    readers.fetch_add(1, std::memory_order_seq_cst);
    return current_.load(std::memory_order_seq_cst);
  }
  static int VisitFile(dl_phdr_info* info, size_t size, void* files);
  void AddFile(const dl_phdr_info& info);
  bool Tell(const dl_phdr_info& info, const CodeRange& range, uint64_t file_offset,
            const uint8_t* build_id, size_t build_id_bytes);
  bool SendRemovedFiles();
  bool SendFilesComplete();
  uint32_t NumberOf(uint64_t identity);
  bool Publish();
  void FreeRetired();
  void FreeList();

  RingProducer* ring_ = nullptr;
  LoaderCounters counters_;
  std::atomic<CodeSnapshot*> current_{nullptr};
  std::atomic<uint32_t> listed_loads_{0};
  std::atomic<uint32_t> given_up_loads_{0};
  Signal refreshed_;
  Stripe readers_[kStripes];

  // Of the refreshing thread.
  CodeSnapshot* retired_ = nullptr;
  uint32_t retired_count_ = 0;
  uint64_t generation_ = 1;
  uint64_t adds_ = 0, subs_ = 0;  // the loader's counters at the last complete list
  uint64_t seen_adds_ = 0, seen_subs_ = 0;
  bool first_seen_ = false;  // of this round
  bool complete_ = false;    // everything was reported
  CodeRange* ranges_ = nullptr;
  uint32_t range_count_ = 0;
  Number* numbers_ = nullptr;
  uint32_t number_count_ = 0;
};

}  // namespace xpu::inject
