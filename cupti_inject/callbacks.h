// What CUPTI calls: on the program's threads, unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::inject {

// `user_data`: Injection::mark.
void OnCallback(void* user_data, uint32_t domain, uint32_t callback_id, const void* data);
void OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records);
void OnBufferCompleted(void* context, uint32_t stream_id, uint8_t* buffer, size_t size,
                       size_t valid_size);

}  // namespace xpu::inject
