#include "buffers.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include "settings.h"
#include "subscriber.h"

namespace xpu::fake_cupti {
namespace {

using fake_cuda::Activity;
using fake_cuda::ActivityKind;

uint64_t NowNs() { return xpu_fake_driver()->now_ns(); }

// Not a thread_local with a destructor: that would also run for the main thread at exit, before
// the handlers of atexit, and take its buffer away too early (exit_return).
pthread_key_t ThreadKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, [](void* current) {
      Buffers::Get().EndThread(static_cast<std::unique_ptr<Buffer>*>(current));
    });
    return made;
  }();
  return key;
}

Record Overhead(uint32_t type, uint64_t start_ns) {
  Activity overhead{ActivityKind::kOverhead};
  overhead.type = type;
  overhead.start_ns = start_ns;
  overhead.end_ns = NowNs();
  overhead.correlation_id = xpu_fake_driver()->current_correlation_id();
  return MakeRecord(overhead, ThreadId());
}

uint64_t FaultOf(const Record& record) {
  return record.context_id == 0 ? UINT64_MAX : xpu_fake_driver()->fault_ns(record.context_id);
}

uint64_t FinishOf(const Record& record) {
  return record.finish_ns < FaultOf(record) ? record.finish_ns : UINT64_MAX;
}

bool Finished(const Buffer& buffer, uint64_t now_ns) {
  return std::all_of(buffer.records.begin(), buffer.records.end(),
                     [&](const Record& record) { return FinishOf(record) <= now_ns; });
}

uint64_t LastFinish(const Buffer& buffer) {
  uint64_t last = 0;
  for (const Record& record : buffer.records) last = std::max(last, FinishOf(record));
  return last;
}

void Reorder(std::vector<Record>* records, uint64_t seed) {
  switch (TheSettings().order) {
    case Order::kAsIs:
      return;
    case Order::kReverse:
      std::reverse(records->begin(), records->end());
      return;
    case Order::kShuffle: {
      std::mt19937_64 random(seed);
      std::shuffle(records->begin(), records->end(), random);
      return;
    }
  }
}

}  // namespace

Buffers& Buffers::Get() {
  static auto* const buffers = [] {
    pthread_atfork(nullptr, nullptr, [] { Buffers::Get().ForgetWorker(); });
    return new Buffers;
  }();
  return *buffers;
}

Buffers::Buffers() : per_thread_(TheSettings().per_thread) {}

void Buffers::SetCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                           CUpti_BuffersCallbackCompleteFunc completed) {
  const std::lock_guard lock(mutex_);
  requested_ = requested;
  completed_ = completed;
}

// In a forked child, which has none of the threads that hold or wait for anything.
void Buffers::ForgetWorker() {
  new (&mutex_) std::mutex;
  new (&worker_began_) std::condition_variable;
  new (&wake_worker_) std::condition_variable;
  new (&flush_done_) std::condition_variable;
  is_orphan_ = is_orphan_ || worker_ != nullptr;
  worker_ = nullptr;
  worker_runs_ = false;
  flushes_done_ = flushes_asked_;
}

void Buffers::StartWorker() {
  std::unique_lock lock(mutex_);
  if (worker_ != nullptr || is_orphan_ || !TheSettings().has_worker) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  worker_ = new std::thread(&Buffers::Run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // A program may forbid all of its threads the calls that one begins with.
  worker_began_.wait(lock, [&] { return worker_runs_; });
}

bool Buffers::IsWorker() {
  const std::lock_guard lock(mutex_);
  return worker_ != nullptr && worker_->get_id() == std::this_thread::get_id();
}

bool Buffers::HasAny() {
  const std::lock_guard lock(mutex_);
  return !ready_.empty() || std::any_of(currents_.begin(), currents_.end(),
                                        [](const auto* current) { return *current != nullptr; });
}

void Buffers::Stop() {
  std::unique_lock lock(mutex_);
  if (worker_ == nullptr) return;
  stops_ = true;
  wake_worker_.notify_one();
  lock.unlock();
  worker_->join();
  lock.lock();
  delete worker_;
  worker_ = nullptr;
  worker_runs_ = false;
  stops_ = false;
  requested_ = nullptr;
  completed_ = nullptr;
  per_thread_ = TheSettings().per_thread;
  ready_.clear();
  for (std::unique_ptr<Buffer>* current : currents_) current->reset();
  flushes_done_ = flushes_asked_;
  forced_asked_ = false;
  flush_done_.notify_all();
}

std::unique_ptr<Buffer>* Buffers::Current() {
  if (!per_thread_) {
    if (currents_.empty()) currents_.push_back(&shared_);
    return &shared_;
  }
  auto* current = static_cast<std::unique_ptr<Buffer>*>(pthread_getspecific(ThreadKey()));
  if (current == nullptr) {
    current = new std::unique_ptr<Buffer>;
    pthread_setspecific(ThreadKey(), current);
    currents_.push_back(current);
  }
  return current;
}

void Buffers::EndThread(std::unique_ptr<Buffer>* current) {
  const std::lock_guard lock(mutex_);
  currents_.remove(current);
  if (*current != nullptr) ready_.push_back(std::move(*current));
  delete current;
  wake_worker_.notify_one();
}

bool Buffers::Fits(const Buffer& buffer, const Record& record) const {
  const bool countable = buffer.max_records == 0 || buffer.records.size() < buffer.max_records;
  return countable && buffer.used + record.bytes.size() <= buffer.size;
}

// On the calling thread, without the lock.
std::unique_ptr<Buffer> Buffers::Request() {
  auto buffer = std::make_unique<Buffer>();
  if (requested_ == nullptr) return nullptr;
  requested_(&buffer->data, &buffer->size, &buffer->max_records);
  buffer->thread_id = ThreadId();
  if (buffer->data != nullptr) return buffer;
  if (TheSettings().cuda < 12090) {
    // It writes there.
    std::fprintf(stderr, "simulated libcupti: no buffer was given\n");
    std::abort();
  }
  return nullptr;
}

void Buffers::Add(Record record) {
  std::unique_lock lock(mutex_);
  ++added_;
  const Settings& settings = TheSettings();
  if (settings.drop_every != 0 && added_ % settings.drop_every == 0) {
    ++dropped_;
    return;
  }
  AddLocked(&lock, std::move(record));
  if (settings.unknown_kind_every != 0 && added_ % settings.unknown_kind_every == 0) {
    AddLocked(&lock, MakeUnknownRecord());
  }
}

// Where a buffer had to be asked for, the overhead of asking comes right after the record that
// needed it: record 1 of every capture.
void Buffers::AddLocked(std::unique_lock<std::mutex>* lock, Record record) {
  std::unique_ptr<Buffer>* current = Current();
  bool requested = false;
  const uint64_t begin_ns = NowNs();
  while (*current == nullptr || !Fits(**current, record)) {
    if (*current != nullptr) {
      ready_.push_back(std::move(*current));
      wake_worker_.notify_one();
    }
    lock->unlock();
    std::unique_ptr<Buffer> fresh = Request();
    lock->lock();
    if (fresh == nullptr || record.bytes.size() > fresh->size) {
      ++dropped_;
      return;
    }
    requested = true;
    fresh->number = next_number_++;
    if (*current != nullptr) ready_.push_back(std::move(*current));
    *current = std::move(fresh);
  }
  Buffer& buffer = **current;
  std::memcpy(buffer.data + buffer.used, record.bytes.data(), record.bytes.size());
  buffer.used += record.bytes.size();
  buffer.records.push_back(std::move(record));
  if (requested && OverheadEnabled()) {
    AddLocked(lock, Overhead(fake_cuda::kOverheadBufferRequest, begin_ns));
  }
}

size_t Buffers::TakeDropped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

CUptiResult Buffers::Flush(bool forced) {
  std::unique_lock lock(mutex_);
  if (is_orphan_) return CUPTI_SUCCESS;  // nothing comes (an H200)
  if (!TheSettings().has_worker) {
    forced_asked_ = forced;
    RunFlush(&lock);
    return CUPTI_SUCCESS;
  }
  if (!worker_runs_) return CUPTI_ERROR_NOT_INITIALIZED;
  if (worker_->get_id() == std::this_thread::get_id()) return CUPTI_ERROR_INVALID_OPERATION;
  const uint64_t mine = ++flushes_asked_;
  forced_asked_ = forced_asked_ || forced;
  wake_worker_.notify_one();
  flush_done_.wait(lock, [&] { return flushes_done_ >= mine; });
  return CUPTI_SUCCESS;
}

// When a full buffer, or one of a thread that has ended, will be finished.
uint64_t Buffers::NextEvent() const {
  uint64_t next = UINT64_MAX;
  for (const auto& buffer : ready_) {
    if (!buffer->flushed) next = std::min(next, LastFinish(*buffer));
  }
  return next;
}

void Buffers::Run() {
  std::unique_lock lock(mutex_);
  worker_runs_ = true;
  worker_began_.notify_one();
  while (!stops_) {
    if (flushes_asked_ > flushes_done_) {
      RunFlush(&lock);
      continue;
    }
    const uint64_t next_ns = NextEvent();
    const uint64_t now_ns = NowNs();
    if (next_ns <= now_ns) {
      DeliverReady(&lock, false, false);
    } else if (next_ns == UINT64_MAX) {
      wake_worker_.wait(lock);
    } else {
      wake_worker_.wait_for(lock, std::chrono::nanoseconds(next_ns - now_ns));
    }
  }
}

bool Buffers::DetachAll() {
  bool any = !ready_.empty();
  for (std::unique_ptr<Buffer>* current : currents_) {
    if (*current == nullptr) continue;
    any = true;
    (*current)->flushed = true;
    ready_.push_back(std::move(*current));
  }
  ready_.sort([](const auto& a, const auto& b) { return a->number < b->number; });
  return any;
}

// The overhead of flushing goes into a buffer of this thread and back in the same flush, after the
// others: the last buffer of every capture.
void Buffers::RunFlush(std::unique_lock<std::mutex>* lock) {
  const uint64_t asked = flushes_asked_;
  const bool forced = std::exchange(forced_asked_, false);
  const uint64_t begin_ns = NowNs();
  if (begin_ns < xpu_fake_driver()->fault_ns(0)) fetched_ns_ = begin_ns;
  if (DetachAll()) {
    for (auto& buffer : ready_) buffer->flushed = true;
    if (OverheadEnabled()) {
      AddLocked(lock, Overhead(fake_cuda::kOverheadFlush, begin_ns));
    }
    DeliverReady(lock, true, forced);
    std::unique_ptr<Buffer>* own = Current();
    if (per_thread_ && *own != nullptr) {
      std::unique_ptr<Buffer> buffer = std::move(*own);
      lock->unlock();
      Deliver(buffer.get());
      lock->lock();
    }
  }
  flushes_done_ = asked;
  flush_done_.notify_all();
}

void Buffers::DeliverReady(std::unique_lock<std::mutex>* lock, bool flush, bool forced) {
  const bool hold_back = TheSettings().hold_back && !forced;
  std::list<std::unique_ptr<Buffer>> going;
  const uint64_t now_ns = NowNs();
  for (auto at = ready_.begin(); at != ready_.end();) {
    const auto next = std::next(at);
    const bool wanted = flush || !(*at)->flushed;
    if (wanted && (!hold_back || Finished(**at, now_ns))) going.splice(going.end(), ready_, at);
    at = next;
  }
  lock->unlock();
  for (const auto& buffer : going) Deliver(buffer.get());
  lock->lock();
}

// Lays the records out anew in the order of the settings, with times and names as they are now.
void Buffers::Deliver(Buffer* buffer) {
  const Settings& settings = TheSettings();
  std::map<const char*, char*> copies;  // of names, for this buffer
  const uint64_t now_ns = NowNs();
  Reorder(&buffer->records, buffer->number);
  uint8_t* at = buffer->data;
  for (const Record& record : buffer->records) {
    std::memcpy(at, record.bytes.data(), record.bytes.size());
    const bool is_lost = FaultOf(record) <= now_ns && record.finish_ns > fetched_ns_ &&
                         !TheState().has_pinned_buffers;
    const bool has_times = FinishOf(record) <= now_ns && !is_lost;
    uint64_t start = has_times ? record.start : 0;
    uint64_t end = has_times ? record.end : 0;
    if (IsKernel(record.kind)) {
      ++kernels_delivered_;
      if (settings.zero_times_every != 0 && kernels_delivered_ % settings.zero_times_every == 0) {
        start = end = 0;
      }
      if (settings.backward_times_every != 0 &&
          kernels_delivered_ % settings.backward_times_every == 0) {
        std::swap(start, end);
      }
    }
    const char* name = record.name;
    if (name != nullptr && settings.poison_names) {
      char*& copy = copies[name];
      if (copy == nullptr) copy = strdup(name);
      name = copy;
    }
    Finish(record, start, end, name, at);
    at += record.bytes.size();
  }
  if (settings.delivery_delay_us != 0) usleep(static_cast<useconds_t>(settings.delivery_delay_us));
  // No context, and the thread's id where the documentation has a stream: as in every capture.
  if (completed_ != nullptr) {
    completed_(nullptr, buffer->thread_id, buffer->data, buffer->size, buffer->used);
  }
  // Overwritten and not freed: whoever reads on gets something wrong, every time.
  for (const auto& [original, copy] : copies) std::memset(copy, '#', std::strlen(copy));
}

}  // namespace xpu::fake_cupti
