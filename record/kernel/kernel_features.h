// Features of newer kernels that xpu-record can do without. Each is tried, not derived from a
// version number. Tests simulate older kernels by disabling some.
#pragma once

#include <cstdint>
#include <string_view>

namespace xpu {

enum class KernelFeature : uint8_t {
  kBuildIdRecords,  // "build_id_records": perf's mapping records contain build-ids, 5.12
  kTableWalk,       // "table_walk": BPF programs can walk by unwind tables (bpf_loop), 5.17
  kLostCount,       // "lost_count": perf events count their lost records, 6.0
  kMapTree,         // "map_tree": the kernel looks mappings up without a lock, 6.1
  kPeerPidfd,       // "peer_pidfd": sockets provide the peer's pidfd, 6.5
  kMultiProbes,     // "uprobe_multi": one link holds all probes of a file, 6.6
  kProbeSessions,   // "uprobe_session": return probes leave other programs alone, 6.13
  kSchedulerExit,   // "scheduler_exit": a tracepoint where threads run again, 6.16
};

// Returns false if a test has disabled the feature.
bool MayUse(KernelFeature feature);

// Disables the features in a list such as "lost_count,table_walk". For tests, before anything else
// is done.
void LeaveOutFeatures(std::string_view names);

}  // namespace xpu
