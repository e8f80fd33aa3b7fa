// The thread that asks CUPTI for what it holds back, and the end of the process.
#pragma once

namespace xpu::cupti_raw {

void RunFlusher();
// At exit.
void Finish();

}  // namespace xpu::cupti_raw
