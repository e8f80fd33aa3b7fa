// What CUPTI calls for each API call and each resource.
#pragma once

#include <cupti.h>

namespace xpu::cupti_raw {

void CUPTIAPI OnCallback(void* user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                         const void* data);

}  // namespace xpu::cupti_raw
