// What cuptiGetCallbackName says: names of the driver API as they are, of the runtime API with the
// version in which the function got its present form.
#include "names.h"

#include "settings.h"
#include "subscriber.h"

namespace xpu::fake_cupti {
namespace {

template <size_t kCount>
const char* Find(const Name (&names)[kCount], uint32_t callback_id) {
  for (const Name& name : names) {
    if (name.callback_id == callback_id) return name.name;
  }
  return nullptr;
}

// The last ids of each version. 11.8 and 12.4: of their libraries, of which 11.8 refuses the ids of
// graph nodes that its header has, 12 to 20; others: by the version with
// which cudaTypedefs.h and the names of the runtime's ids mark their functions.
struct LastIds {
  uint32_t cuda;
  uint32_t driver;
  uint32_t runtime;
  uint32_t resource;
};
constexpr LastIds kLastIds[] = {
    {11080, 676, 433, 11}, {12000, 700, 443, 20}, {12020, 717, 450, 20}, {12030, 732, 464, 21},
    {12040, 753, 467, 21}, {12050, 760, 469, 21}, {12060, 762, 479, 21}, {12080, 781, 486, 21},
    {12090, 782, 486, 21}, {13000, 806, 522, 23},
};

// An older function that does what a newer one does; programs that were built for the older version
// call it. 0: there is none, and what a program has from the newer one it did not have.
struct Older {
  uint32_t domain;
  uint32_t newer;
  uint32_t older;
};
constexpr uint32_t kDriver = CUPTI_CB_DOMAIN_DRIVER_API;
constexpr uint32_t kRuntime = CUPTI_CB_DOMAIN_RUNTIME_API;
constexpr Older kOlder[] = {
    {kDriver, 689, 502},  {kDriver, 692, 538},  {kDriver, 696, 561},  {kDriver, 716, 467},
    {kDriver, 717, 468},  {kDriver, 723, 712},  {kDriver, 780, 123},  {kDriver, 795, 16},
    {kDriver, 796, 776},  {kDriver, 797, 777},  {kDriver, 798, 778},  {kDriver, 799, 779},
    {kDriver, 800, 17},   {kRuntime, 443, 310}, {kRuntime, 449, 252}, {kRuntime, 450, 253},
    {kRuntime, 460, 445}, {kRuntime, 486, 139}, {kRuntime, 505, 211}, {kRuntime, 506, 214},
    {kRuntime, 509, 482}, {kRuntime, 510, 483}, {kRuntime, 511, 484}, {kRuntime, 512, 485},
};

uint32_t LastOf(const LastIds& ids, uint32_t domain) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return ids.driver;
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return ids.runtime;
    case CUPTI_CB_DOMAIN_RESOURCE:
      return ids.resource;
    default:
      return kMaxCallbackId - 1;
  }
}

}  // namespace

uint32_t LastCallbackId(CUpti_CallbackDomain domain) {
  uint32_t last = 0;
  for (const LastIds& ids : kLastIds) {
    if (ids.cuda <= TheSettings().cuda) last = LastOf(ids, domain);
  }
  return last;
}

std::optional<uint32_t> CallbackIdThen(uint32_t domain, uint32_t callback_id) {
  const uint32_t last = LastCallbackId(static_cast<CUpti_CallbackDomain>(domain));
  if (callback_id <= last) return callback_id;
  for (const Older& older : kOlder) {
    if (older.domain != domain || older.newer != callback_id) continue;
    if (older.older <= last) return older.older;
  }
  return std::nullopt;
}

const char* CallbackName(CUpti_CallbackDomain domain, uint32_t callback_id) {
  if (callback_id > LastCallbackId(domain)) return nullptr;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) return Find(kDriverNames, callback_id);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return Find(kRuntimeNames, callback_id);
  return nullptr;
}

}  // namespace xpu::fake_cupti
