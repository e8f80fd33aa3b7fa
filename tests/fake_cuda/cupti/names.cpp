// What cuptiGetCallbackName says: names of the driver API as they are, of the runtime API with the
// version in which the function got its present form.
#include "names.h"

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

}  // namespace

const char* CallbackName(CUpti_CallbackDomain domain, uint32_t callback_id) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) return Find(kDriverNames, callback_id);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return Find(kRuntimeNames, callback_id);
  return nullptr;
}

}  // namespace xpu::fake_cupti
