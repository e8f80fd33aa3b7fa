// Who gets callbacks, which activity kinds are on, and what the driver reports.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include <cupti.h>

struct CUpti_Subscriber_st {
  CUpti_CallbackFunc callback = nullptr;
  void* user_data = nullptr;
};

namespace xpu::fake_cupti {

inline constexpr size_t kMaxCallbackId = 1024;  // CUDA 13.0 has about 800 of the driver API

inline constexpr size_t kDeviceBuffers = 250;

struct State {
  std::atomic<CUpti_Subscriber_st*> subscriber{nullptr};
  std::array<std::array<std::atomic<bool>, kMaxCallbackId>, CUPTI_CB_DOMAIN_SIZE> callbacks{};
  std::array<std::atomic<bool>, CUPTI_ACTIVITY_KIND_COUNT> kinds{};
  // Nodes of a graph were recorded since the last cuptiFinalize; a graph was replayed afterwards
  // while no kind was on that records nodes.
  std::atomic<bool> recorded_nodes{false};
  std::atomic<bool> replayed_unrecorded{false};
  std::atomic<uint32_t> replays{0};  // that threads are in
  std::atomic<size_t> device_buffers{kDeviceBuffers};
  std::atomic<bool> has_pinned_buffers{false};  // on the host, where they outlive the context
  std::atomic<bool> is_set_up{false};
  // cuptiActivityEnableDriverApi and RuntimeApi, by callback id
  std::array<std::array<std::atomic<bool>, kMaxCallbackId>, 3> chosen_calls{};
};

State& TheState();

// Makes the driver report to us.
void Observe();
// What the device works on that was launched before.
void ReportUnfinished();

bool KindEnabled(uint32_t kind);

// What the calling thread is in, where CUPTI has called its client.
enum class CallbackSite {
  kNone,
  kEnter,
  kExit,
  kInnerExit,
  kResource
};  // inner: of a call in a call
CallbackSite CurrentCallback();

// As if CUPTI had not been started.
void Forget();

// nullptr: none.
const char* CallbackName(CUpti_CallbackDomain domain, uint32_t callback_id);
// The greatest that the version has.
uint32_t LastCallbackId(CUpti_CallbackDomain domain);
// The id by which the version calls it: newer variants of a function were not there, and programs
// of that time called the older one. None: there was none.
std::optional<uint32_t> CallbackIdThen(uint32_t domain, uint32_t callback_id);

}  // namespace xpu::fake_cupti
