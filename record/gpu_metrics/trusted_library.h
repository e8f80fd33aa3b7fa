// Which libraries of CUDA a process with root's rights may load.
//
// The recorder is often root, and the libcupti that the recorded program uses often lies in a
// directory of its user: a Python environment. Loading it would run that user's code as root.
#pragma once

#include <string>

#include "format/base/result.h"

namespace xpu::gpu_metrics {

// True if only root, or the user that this process runs as, can have written the file: it, and each
// directory on the way to it, belongs to one of them and is not writable by others. kPermission
// otherwise; the message names what is not.
Status CheckTrusted(const std::string& path);

// The libcupti of an installed toolkit, newest first; or `wanted`, unless that is empty. kNotFound:
// there is none, kPermission: there are only ones that others can have written.
Result<std::string> FindCupti(const std::string& wanted);

}  // namespace xpu::gpu_metrics
