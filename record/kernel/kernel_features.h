// What newer kernels have and xpu-record does without on older ones: each is tried, not concluded
// from a version. Tests make this kernel an older one by leaving some out.
#pragma once

#include <cstdint>
#include <string_view>

namespace xpu {

enum class KernelFeature : uint8_t {
  kBuildIdRecords,  // "build_id_records": perf's records of mappings have build-ids, 5.12
  kTableWalk,       // "table_walk": BPF programs walk by unwind tables (bpf_loop), 5.17
  kLostCount,       // "lost_count": perf events count what they lost, 6.0
  kMapTree,         // "map_tree": mappings are looked up without a lock, 6.1
  kPeerPidfd,       // "peer_pidfd": sockets tell their peer's pidfd, 6.5
  kMultiProbes,     // "uprobe_multi": one link places all probes of a file, 6.6
  kProbeSessions,   // "uprobe_session": probes at returns spare other programs, 6.13
};

// False: for a test this kernel is not to have it.
bool MayUse(KernelFeature feature);

// Those in a list of their names, "lost_count,table_walk", are not used from now on. For tests,
// before anything else is done.
void LeaveOutFeatures(std::string_view names);

}  // namespace xpu
