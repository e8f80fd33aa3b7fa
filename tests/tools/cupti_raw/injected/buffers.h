// The buffers that CUPTI asks for and hands back filled.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cupti.h>

namespace xpu::cupti_raw {

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records);
void CUPTIAPI OnBufferCompleted(CUcontext context, uint32_t stream_id, uint8_t* buffer, size_t size,
                                size_t valid_size);

}  // namespace xpu::cupti_raw
