#include "probe.h"

#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void probe_kernel(unsigned long long /*spin_ns*/) {}

namespace xpu::fake_cuda_test {
namespace {

pid_t ThreadId() { return static_cast<pid_t>(syscall(SYS_gettid)); }

}  // namespace

uint64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void InChild(const std::vector<std::string>& environment, const std::function<void()>& body) {
  std::fflush(nullptr);  // not twice
  const pid_t child = fork();
  if (child == 0) {
    for (const std::string& variable : environment) putenv(strdup(variable.c_str()));
    body();
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child process says why";
}

Probe* Probe::self_ = nullptr;

Probe::Probe(const std::vector<CUpti_ActivityKind>& kinds) {
  self_ = this;
  CUpti_SubscriberHandle subscriber = nullptr;
  EXPECT_EQ(cuptiSubscribe(&subscriber, &OnCall, nullptr), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted), CUPTI_SUCCESS);
  for (const CUpti_ActivityKind kind : kinds) EXPECT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
}

void Probe::Flush(bool forced) {
  EXPECT_EQ(cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0), CUPTI_SUCCESS);
}

void Probe::WaitForBuffers(size_t count) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return buffers_.size() >= count; });
}

std::vector<SeenRecord> Probe::Records(uint32_t kind) {
  const std::lock_guard lock(mutex_);
  std::vector<SeenRecord> records;
  for (const SeenBuffer& buffer : buffers_) {
    for (const SeenRecord& record : buffer.records) {
      if (record.kind == kind) records.push_back(record);
    }
  }
  return records;
}

std::vector<SeenBuffer> Probe::Buffers() {
  const std::lock_guard lock(mutex_);
  return buffers_;
}

std::vector<SeenCall> Probe::Calls() {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void Probe::OnCall(void* /*user_data*/, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                   const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  const std::lock_guard lock(self_->mutex_);
  self_->calls_.push_back({static_cast<uint32_t>(domain), cbid,
                           call->callbackSite == CUPTI_API_EXIT, call->correlationId});
}

void Probe::OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  const std::lock_guard lock(self_->mutex_);
  *size = self_->buffer_bytes;
  *max_records = self_->max_records;
  *buffer = self_->refuse_buffers ? nullptr : static_cast<uint8_t*>(std::malloc(*size));
  if (*buffer != nullptr) self_->requested_.emplace_back(*buffer, ThreadId());
}

void Probe::OnCompleted(CUcontext /*context*/, uint32_t stream_id, uint8_t* buffer, size_t /*size*/,
                        size_t valid_size) {
  SeenBuffer seen;
  seen.completed_by = ThreadId();
  seen.stream_id = stream_id;
  std::vector<uint8_t*> starts;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_size, &record) == CUPTI_SUCCESS) {
    starts.push_back(reinterpret_cast<uint8_t*>(record));
  }
  starts.push_back(buffer + valid_size);
  const std::lock_guard lock(self_->mutex_);
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    SeenRecord one;
    one.bytes.assign(starts[i], starts[i + 1]);
    std::memcpy(&one.kind, starts[i], sizeof(one.kind));
    if (one.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      self_->last_name_ = one.kernel().name;
      one.name = one.kernel().name;
    }
    seen.records.push_back(std::move(one));
  }
  for (auto& [address, thread] : self_->requested_) {
    if (address == buffer) seen.requested_by = thread;
  }
  std::erase_if(self_->requested_, [&](const auto& request) { return request.first == buffer; });
  size_t dropped = 0;
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  self_->dropped_ += dropped;
  self_->buffers_.push_back(std::move(seen));
  self_->arrived_.notify_all();
  std::free(buffer);
}

void LaunchKernel(uint64_t spin_ns, cudaStream_t stream) {
  unsigned long long argument = spin_ns;
  void* args[] = {&argument};
  EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(&probe_kernel), dim3(2, 3, 4),
                             dim3(32, 2, 1), args, 48, stream),
            cudaSuccess);
}

void LaunchKernels(int count) {
  for (int i = 0; i < count; ++i) LaunchKernel();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

}  // namespace xpu::fake_cuda_test
