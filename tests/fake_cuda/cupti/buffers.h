// Activity buffers: one per thread, given back to the subscriber by a thread of our own.
//
// A record gets its place when the work is enqueued, so the records of one thread lie in the order
// of its calls, whatever the order of their times (in_flight: 40 kernels out of order). A buffer
// goes back when it is full, when its thread has ended (transformer_threads: three buffers come
// before the flush) or at a flush, and not before all in it is finished (in_flight: 17
// buffers wait for the first one's kernel). A forced flush does not wait: what is unfinished then
// has 0 for start and end, and never comes again (in_flight_forced). After a fault, work that had
// not ended never does; with the device's buffers in its own memory, the times of what had ended
// since the last flush are lost with them.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cupti.h>

#include "records.h"

namespace xpu::fake_cupti {

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t max_records = 0;  // 0: no limit
  uint32_t thread_id = 0;
  uint64_t number = 0;   // in the order of the requests
  bool flushed = false;  // waits for the next flush, not for its own end
  std::vector<Record> records;
};

class Buffers {
 public:
  static Buffers& Get();

  void SetCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                    CUpti_BuffersCallbackCompleteFunc completed);
  void StartWorker();
  // Ends the worker; what was not delivered is lost. Not on the worker.
  void Stop();
  // Something has not been delivered.
  bool HasAny();
  bool IsWorker();

  // Puts the record into the calling thread's buffer.
  void Add(Record record);

  // Returns when everything that may go back has gone back.
  CUptiResult Flush(bool forced);

  void EndThread(std::unique_ptr<Buffer>* current);
  size_t TakeDropped();
  void set_per_thread(bool per_thread) { per_thread_ = per_thread; }

 private:
  Buffers();
  void ForgetWorker();
  std::unique_ptr<Buffer>* Current();
  bool Fits(const Buffer& buffer, const Record& record) const;
  void AddLocked(std::unique_lock<std::mutex>* lock, Record record);
  std::unique_ptr<Buffer> Request();
  void Run();
  void RunFlush(std::unique_lock<std::mutex>* lock);
  bool DetachAll();
  uint64_t NextEvent() const;
  void DeliverReady(std::unique_lock<std::mutex>* lock, bool flush, bool forced);
  void Deliver(Buffer* buffer);

  std::mutex mutex_;
  std::condition_variable worker_began_;
  std::condition_variable wake_worker_;
  std::condition_variable flush_done_;
  CUpti_BuffersCallbackRequestFunc requested_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed_ = nullptr;
  bool per_thread_;
  bool worker_runs_ = false;
  std::thread* worker_ = nullptr;
  bool is_orphan_ = false;  // the worker was of the parent process
  bool stops_ = false;
  std::list<std::unique_ptr<Buffer>*> currents_;  // one per thread that has ever had a buffer
  std::list<std::unique_ptr<Buffer>> ready_;      // off their threads, not yet delivered
  std::unique_ptr<Buffer> shared_;                // when there is one for all threads
  uint64_t next_number_ = 0;
  uint64_t flushes_asked_ = 0;
  uint64_t flushes_done_ = 0;
  bool forced_asked_ = false;
  uint64_t added_ = 0;
  uint64_t kernels_delivered_ = 0;
  uint64_t fetched_ns_ = 0;  // the last flush before a fault
  size_t dropped_ = 0;
};

// The kernel's id of the calling thread, or what cuptiSetThreadIdType chose.
uint32_t ThreadId();
void SetThreadIdType(CUpti_ActivityThreadIdType type);
CUpti_ActivityThreadIdType ThreadIdType();

bool OverheadEnabled();

}  // namespace xpu::fake_cupti
